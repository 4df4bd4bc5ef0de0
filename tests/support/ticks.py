"""The daemon in this process: ticks of the sensor, and the runs that they ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg

from mteblite_assets.cli.session import QUIET, Session


class Ticks:
    """Evaluates the sensor as the daemon does, and runs what it asks for at once."""

    def __init__(self) -> None:
        self.session = Session()
        self.cursor = ""
        self.message = ""
        self.requests: list[dg.RunRequest] = []

    def look(self) -> list[dg.RunRequest]:
        """Evaluate the sensor once; return the runs that it asks for."""
        self.session = Session()  # every tick reads all files again
        sensor = self.session.definitions.resolve_sensor_def("upkeep")
        context = dg.build_sensor_context(
            instance=self.session.instance,
            cursor=self.cursor,
            definitions=self.session.definitions,
        )
        found = sensor.evaluate_tick(context)
        self.cursor, self.message = found.cursor or "", found.skip_message or ""
        return list(found.run_requests or [])

    def run(self, request: dg.RunRequest) -> Any:
        """Run what was asked for, as the run launcher does."""
        job = self.session.definitions.resolve_job_def("materialize")
        return job.execute_in_process(
            run_config={**request.run_config, **QUIET},
            instance=self.session.instance,
            tags=request.tags,
            raise_on_error=False,
        )

    def until_quiet(self, quiet: int = 3, most: int = 20) -> list[dg.RunRequest]:
        """Tick and run until so many ticks in a row ask for nothing; return what was asked for."""
        asked: list[dg.RunRequest] = []
        silent = 0
        for _ in range(most):
            found = self.look()
            for request in found:
                self.run(request)
            asked += found
            silent = 0 if found else silent + 1
            if silent == quiet:
                return asked
        raise AssertionError(f"still asked for runs after {most} ticks: {asked}")

    def ledger(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the ledger now."""
        return self.session.bench.warehouse.ledger()


def made_since(
    before: dict[tuple[str, str], dict[str, Any]], now: dict[tuple[str, str], dict[str, Any]]
) -> dict[str, set[str]]:
    """Return by asset the partitions that a run has written since."""
    made: dict[str, set[str]] = {}
    for (asset, key), entry in now.items():
        if before.get((asset, key), {}).get("run_id") != entry["run_id"]:
            made.setdefault(asset, set()).add(key)
    return made


def replace_text(path: Path, old: str, new: str) -> None:
    """Replace the first occurrence of a text in a file."""
    text = path.read_text(encoding="utf-8")
    assert old in text, (path, old)
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
