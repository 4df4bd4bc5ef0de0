"""A run that is killed or finds the disk full keeps what it had; the next one continues."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from pathlib import Path

import pandas as pd
import pytest
from support import tiny_suite
from support.tiny_suite import SUITE, ran, table

from mteblite_assets.cli.session import Session

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
    return {name: table(home, name, drop) for name, drop in RESULTS.items()}


def assert_same(one: dict[str, pd.DataFrame], other: dict[str, pd.DataFrame]) -> None:
    for name, frame in one.items():
        pd.testing.assert_frame_equal(frame, other[name], rtol=0, atol=1e-6, obj=name)


MOMENTS = ("embedding_stats 4/", pytest.param("full_scores 7/", marks=pytest.mark.long))
"""Progress lines after which the run is killed."""


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_run_is_continued(world, home, upkeep, moment):
    expected = results(home)
    _empty(home)
    process, _ = _stop_at(home, moment, signal.SIGKILL)
    assert process.exitcode == -signal.SIGKILL
    report = upkeep()
    first, again = ran(world.first), ran(report)
    done = {a: set(keys) - set(again.get(a, [])) for a, keys in first.items()}
    assert done["suite_tasks"]
    # A batch that was not stored yet runs again; whole stages before it do not.
    if not moment.startswith("embedding_stats"):
        assert done["embedding_stats"] == set(first["embedding_stats"])
    assert_same(expected, results(home))


def test_full_disk_ends_the_run_with_its_reason_and_loses_nothing(home, upkeep, monkeypatch):
    import mteblite_assets.outcomes.assets as outcomes

    expected = results(home)
    _empty(home)
    whole, left = outcomes.score_pool, [7]

    def full(*given, **named):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        return whole(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(outcomes, "score_pool", full)
        code, _, err = tiny_suite.command("--quiet", "materialize", "--suite", SUITE)
    assert code == 1
    assert "No space left on device" in err
    assert "what was finished is stored" in err
    assert "Traceback" not in err
    report = upkeep()
    assert "embedding_stats" not in ran(report)
    assert len(ran(report)["item_outcomes"]) == 15 - 7
    assert_same(expected, results(home))


def test_warehouse_that_cannot_be_written_loses_no_earlier_partition(home, upkeep, monkeypatch):
    import mteblite_assets.graph.driver as driver

    whole, left = driver.write_ledger, [20]

    def full(connection, asset, key, entry):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(connection, asset, key, entry)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "write_ledger", full)
        code, _, err = tiny_suite.command(
            "--quiet", "materialize", "--suite", SUITE, "--stage", "embeddings",
            "--stage", "outcomes", "--force",
        )  # fmt: skip
    assert code == 1
    assert "No space left on device" in err
    assert tiny_suite.counts(upkeep()) == {}
    assert len(table(home, "outcomes.item_outcomes")) == 600


def test_ctrl_c_says_what_is_kept(home):
    _empty(home)
    process, text = _stop_at(home, "embedding_stats 2/", signal.SIGINT)
    assert process.exitcode == 130, text
    assert text.rstrip().endswith("stopped; what was finished is stored, the next run continues")
    assert "Traceback" not in text


def test_half_a_snapshot_of_a_killed_run_is_cleared_away(home):
    left = home / ".mteblite.duckdb.99999999"
    left.write_bytes(b"half")
    Session().bench.warehouse.publish(anew=True)
    assert not left.exists()
    assert len(table(home, "outcomes.pool_scores")) == 15


def _stop_at(home, moment, with_signal):
    """Run `mteblite materialize` and send a signal once its log shows the moment."""
    log = home.parent / "stopped.log"
    log.write_text("")
    process = tiny_suite.start(home, "materialize", "--suite", SUITE, log=log)
    deadline = time.monotonic() + 120
    while moment not in log.read_text() and time.monotonic() < deadline:
        assert process.is_alive(), log.read_text()
        time.sleep(0.01)
    os.killpg(process.pid, with_signal)
    process.join()
    return process, log.read_text()


def _empty(home: Path) -> None:
    for path in home.iterdir():
        if path.name not in ("suites", "dbt"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
