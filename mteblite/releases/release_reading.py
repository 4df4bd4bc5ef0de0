"""A release, built from the files of its folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.pools.pool import Pool
from mteblite.releases.released_task import ReleasedTask
from mteblite.releases.suite_release import SuiteRelease, task_folders
from mteblite.suites.task_description import TaskDescription

DESCRIBED = ("splits", "hf_subsets", "metrics")
TASK_KEYS = ("task", "task_type", "main_metric", "dataset_revision", "source", *DESCRIBED,
             "pool_hash", "part_of")  # fmt: skip
"""Required keys of a task in `release.json`."""
FINITE = ("slope", "intercept", "theta_mean", "theta_sd", "reference_low", "reference_high")
"""Numbers of a task's calibration that a score is computed from, or judged by."""


class DamagedPartError(ValueError):
    """A file of a release cannot be used; names the file and what it lacks."""


def release_of(folder: Path, manifest: dict[str, Any]) -> SuiteRelease:
    """Return the release of a folder whose files have been checked.

    Raises:
        DamagedPartError: a file lacks something, or a number is none.
    """
    with _part("release.json"):
        entries = sorted((_entry(e) for e in manifest["tasks"]), key=lambda e: str(e["task"]))
        # Folder names are computed, not read, so that a manifest cannot name a path outside.
        folders = task_folders(str(entry["task"]) for entry in entries)
        versions = dict(manifest["versions"])
    with _part("intervals.parquet"):
        intervals = pd.read_parquet(folder / "intervals.parquet")
        _finite("level", intervals["level"])
    return SuiteRelease(
        suite=str(manifest["suite"]),
        variant=str(manifest["variant"]),
        max_tokens=manifest["max_tokens"],
        created_from=str(manifest["created_from"]),
        versions=versions,
        tasks=tuple(_task(folder, folders[str(entry["task"])], entry) for entry in entries),
        intervals=intervals,
        joint=_joint(folder / "joint.json"),
        document=(folder / "SELECTION.md").read_text(encoding="utf-8"),
        headline=str(manifest["headline"]),
        parts={str(e["task"]): str(e["part_of"]) for e in entries if e["part_of"]},
    )


def _entry(entry: Any) -> dict[str, Any]:
    """Return a task of the manifest, which has all keys."""
    for key in TASK_KEYS:
        if key not in entry:
            raise ValueError(f"task {entry.get('task', '')!r} has no {key!r}")
    return dict(entry)


def _task(folder: Path, name: str, entry: Mapping[str, Any]) -> ReleasedTask:
    place = folder / "tasks" / name
    with _part("release.json"):
        fields: dict[str, Any] = {
            key: tuple(entry[key]) if key in DESCRIBED else entry[key] for key in TASK_KEYS[:-2]
        }
        description = TaskDescription(**fields)
    with _part(f"tasks/{name}/fitted.json"):
        text = (place / "fitted.json").read_text(encoding="utf-8")
        json.loads(text, parse_constant=_no_number)
        fitted = FittedTask.from_json(text)
        row = fitted.calibration_row()
        for key in FINITE:
            _finite(key, [row[key]])
        _finite("weight", fitted.selection["weight"])
    with _part(f"tasks/{name}/pool"):
        pool = Pool.load(place / "pool")
    return ReleasedTask(description, fitted, pool, pool_hash=str(entry["pool_hash"]))


def _joint(path: Path) -> str | None:
    if not path.is_file():
        return None
    with _part(path.name):
        text = path.read_text(encoding="utf-8")
        json.loads(text, parse_constant=_no_number)
        JointCalibration.from_json(text)
    return text


def _finite(name: str, values: Any) -> None:
    if not np.isfinite(np.asarray(values, dtype=float)).all():
        raise ValueError(f"{name!r} is not a finite number")


def _no_number(token: str) -> NoReturn:
    raise ValueError(f"it holds {token}, which is no number")


@contextmanager
def _part(name: str) -> Iterator[None]:
    """Name the file that an error inside is about."""
    try:
        yield
    except KeyError as error:
        raise DamagedPartError(f"{name} has no {error.args[0]!r}") from error
    except (OSError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise DamagedPartError(f"{name}: {error}") from error
