"""Cutting a loaded mteb task's data to a few items, in mteb's own shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData


def cut_rows(task: Any, pool: Pool, data: TaskData, rows: Mapping[Cell, list[int]]) -> None:
    """Keep the rows of the selected items."""
    for (split, subset), kept in rows.items():
        holder = holder_of(task, subset)
        holder[split] = holder[split].select(kept)


def holder_of(task: Any, subset: str) -> Any:
    """Return what holds the splits of a subset, found as mteb's `AbsTask.evaluate` finds it."""
    held = task.dataset
    return held if subset not in held and subset == "default" else held[subset]
