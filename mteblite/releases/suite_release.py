"""A released lite suite: every task's selection, and all data to score a new model.

A release's version is a hash of its content. The same suite gives the same version on every
machine and day. Other reference models give another version.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from mteblite.releases.released_task import ReleasedTask
from mteblite.suites.task_types import TaskTypes
from mteblite.task_types.registry import task_kind

FORMAT = 1
"""Raised when a release of this version cannot be read by earlier ones."""
RESERVED = ("calibrations", "intervals", "default")
"""Names of the tables beside the tasks; no task's folder has one of these names."""
INTERVAL_COLUMNS = ["target", "half_width", "interval_method", "n_families", "level"]


@dataclass(frozen=True)
class SuiteRelease:
    """A released lite suite.

    Attributes:
        variant: its selection, estimator and set selection.
        max_tokens: cap on the tokens of a text; None = each model's own.
        created_from: data version of the lite suite in its warehouse.
        versions: versions of the programs that made it, e.g. `mteb`, `mteblite`.
        tasks: sorted by name.
        intervals: INTERVAL_COLUMNS and others, half-widths of the intervals by target.
        joint: the joint calibration of all tasks as JSON (`JointCalibration.to_json`); None where
            every task is calibrated by itself.
        document: the text of SELECTION.md.
        headline: the suite's main mean.
        parts: aggregate that a task is a part of, by task; its parts count as one task.
    """

    suite: str
    variant: str
    max_tokens: int | None
    created_from: str
    versions: Mapping[str, str]
    tasks: tuple[ReleasedTask, ...] = field(repr=False)
    intervals: pd.DataFrame = field(repr=False)
    joint: str | None = field(repr=False)
    document: str = field(repr=False)
    headline: str = "macro_mean"
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def task_types(self) -> TaskTypes:
        """Type of every task, and the aggregates whose parts count as one task."""
        return TaskTypes({t.task: t.description.task_type for t in self.tasks}, self.parts)

    @property
    def n_items(self) -> int:
        """Selected items of all tasks."""
        return sum(len(t.fitted.selection) for t in self.tasks)

    @cached_property
    def content_hash(self) -> str:
        """Hash (64 hex digits) of the release's content, independent of its files."""
        value = {
            "format": FORMAT,
            "suite": self.suite,
            "variant": self.variant,
            "max_tokens": self.max_tokens,
            "created_from": self.created_from,
            "versions": dict(self.versions),
            "intervals": self.interval_records(),
            "joint": self.joint,
            "document": self.document,
            "headline": self.headline,
            "parts": dict(self.parts),
            "tasks": [
                {
                    "description": asdict(t.description),
                    "fitted": t.fitted.to_json(),
                    "pool": t.pool.pool_hash(),
                    "drawn_from": t.pool_hash,
                }
                for t in self.tasks
            ],
        }
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()

    @property
    def version(self) -> str:
        """Version: the suite's name and the first digits of the content hash."""
        return f"{self.suite}-{self.content_hash[:12]}"

    def interval_records(self) -> list[dict[str, Any]]:
        """Return the intervals as JSON-able rows; an unknown half-width is None."""
        others = sorted(set(self.intervals.columns) - {*INTERVAL_COLUMNS, "suite"})
        table = self.intervals[[*INTERVAL_COLUMNS, *others]].sort_values("target")
        rows = table.to_dict("records")
        return [
            {str(k): None if isinstance(v, float) and v != v else v for k, v in row.items()}
            for row in rows
        ]

    def manifest(self, folders: Mapping[str, str]) -> dict[str, Any]:
        """Return `release.json`, the release without its tables; `folders` is by task."""
        return {
            "format": FORMAT,
            "suite": self.suite,
            "version": self.version,
            "content_hash": self.content_hash,
            "created_from": self.created_from,
            "variant": self.variant,
            "headline": self.headline,
            "max_tokens": self.max_tokens,
            "versions": dict(self.versions),
            "n_items": self.n_items,
            "tasks": [
                {
                    "folder": folders[t.task],
                    "kind": task_kind(t.description.task_type),
                    "n_items": len(t.fitted.selection),
                    "n_texts": len(t.pool.texts),
                    "pool_hash": t.pool_hash,
                    "part_of": self.parts.get(t.task, ""),
                    **{
                        k: list(v) if isinstance(v, tuple) else v
                        for k, v in asdict(t.description).items()
                        if k != "path"
                    },
                }
                for t in self.tasks
            ],
        }


def task_folders(tasks: Iterable[str]) -> dict[str, str]:
    """Return a folder name per task: letters, digits and `._-`, different without regard to case.

    The names are also configurations of a data set, which allow no other characters.
    """
    folders: dict[str, str] = {}
    taken = set(RESERVED)
    for task in sorted(tasks):
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", task).strip(".-") or "task"
        name, number = plain, 2
        while name.lower() in taken:
            name, number = f"{plain}-{number}", number + 1
        taken.add(name.lower())
        folders[task] = name
    return folders
