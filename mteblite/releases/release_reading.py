"""A release, built from the files of its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.pools.pool import Pool
from mteblite.releases.released_task import ReleasedTask
from mteblite.releases.suite_release import SuiteRelease, task_folders
from mteblite.suites.task_description import TaskDescription

DESCRIBED = {"splits", "hf_subsets", "metrics"}


def release_of(folder: Path, manifest: dict[str, Any]) -> SuiteRelease:
    """Return the release of a folder whose files have been checked."""
    # Folder names are computed, not read, so that a manifest cannot name a path outside.
    folders = task_folders(str(entry["task"]) for entry in manifest["tasks"])
    joint = folder / "joint.json"
    return SuiteRelease(
        suite=str(manifest["suite"]),
        variant=str(manifest["variant"]),
        max_tokens=manifest["max_tokens"],
        created_from=str(manifest["created_from"]),
        versions=dict(manifest["versions"]),
        tasks=tuple(
            _task(folder / "tasks" / folders[str(entry["task"])], entry)
            for entry in sorted(manifest["tasks"], key=lambda e: str(e["task"]))
        ),
        intervals=pd.read_parquet(folder / "intervals.parquet"),
        joint=joint.read_text(encoding="utf-8") if joint.is_file() else None,
        document=(folder / "SELECTION.md").read_text(encoding="utf-8"),
        headline=str(manifest["headline"]),
        parts={str(e["task"]): str(e["part_of"]) for e in manifest["tasks"] if e["part_of"]},
    )


def _task(folder: Path, entry: dict[str, Any]) -> ReleasedTask:
    fields: dict[str, Any] = {
        name: tuple(entry[name]) if name in DESCRIBED else entry[name]
        for name in ("task", "task_type", "main_metric", "dataset_revision", "source", *DESCRIBED)
    }
    return ReleasedTask(
        description=TaskDescription(**fields),
        fitted=FittedTask.from_json((folder / "fitted.json").read_text(encoding="utf-8")),
        pool=Pool.load(folder / "pool"),
        pool_hash=str(entry["pool_hash"]),
    )
