"""Builds of the tiny suite that are stopped at a moment, and what must not depend on it."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pandas as pd

from support import tiny_suite
from support.tiny_suite import SUITE, table

RESULTS = {
    "pools.pool_items": (), "outcomes.item_outcomes": (),
    "reference_scores.full_scores": (), "item_parameters.item_parameters": (),
    "selections.selected_items": (), "calibrations.calibrations": (),
    "validation.lomo_predictions": (), "validation.validation_metrics": (),
    "lite_scores.task_scores": (),
    "lite_scores.suite_scores": ("seconds", "n_encoded"),
}  # fmt: skip
"""What must not depend on how a run went; times and counts of encoded texts may."""


def results(home: Path) -> dict[str, pd.DataFrame]:
    """Return what a home has computed."""
    return {name: table(home, name, drop) for name, drop in RESULTS.items()}


def assert_same(one: dict[str, pd.DataFrame], other: dict[str, pd.DataFrame]) -> None:
    """Compare two `results`."""
    for name, frame in one.items():
        pd.testing.assert_frame_equal(frame, other[name], rtol=0, atol=1e-6, obj=name)


def empty(home: Path) -> None:
    """Forget what was computed; dbt's parsed manifest stays."""
    for path in home.iterdir():
        if path.name not in ("suites", "dbt"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def start_until(home: Path, moment: str) -> tuple[Any, Path]:
    """Start `mteblite materialize`; return process and log once the log shows the moment.

    A run whose log never shows it goes on to its end.
    """
    log = home.parent / "stopped.log"
    log.write_text("")
    process = tiny_suite.start(home, "materialize", "--suite", SUITE, log=log)
    deadline = time.monotonic() + 120
    while moment not in log.read_text() and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    return process, log


def stop_at(home: Path, moment: str, with_signal: int, delay: float = 0.0) -> tuple[Any, str]:
    """Run `mteblite materialize`; send a signal so many seconds after its log shows the moment.

    Returns the process, which has ended, and its log.
    """
    process, log = start_until(home, moment)
    time.sleep(delay)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, with_signal)
    process.join()
    return process, log.read_text()
