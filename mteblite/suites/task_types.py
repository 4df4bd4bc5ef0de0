"""Types of a suite's tasks, and the aggregates whose parts count as one task.

mteb counts an aggregate (CQADupstackRetrieval, the mean of twelve forums) as one task of a
benchmark (`abstasks/aggregated_task.py`), so each of its parts has a twelfth of a task's weight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd


class TaskTypes(dict[str, str]):
    """Type by task; `parts` has the aggregate of each task that is part of one."""

    def __init__(self, types: Mapping[str, str], parts: Mapping[str, str] | None = None) -> None:
        super().__init__(types)
        self.parts = {task: whole for task, whole in (parts or {}).items() if whole}


def task_types(tasks: pd.DataFrame) -> TaskTypes:
    """Return the types of rows of `suites.suite_tasks` (task, task_type, part_of)."""
    types = dict(zip(tasks["task"], tasks["task_type"], strict=True))
    parts = tasks["part_of"].fillna("") if "part_of" in tasks else [""] * len(tasks)
    return TaskTypes(types, dict(zip(tasks["task"], parts, strict=True)))


def shares(tasks: Sequence[str], types: Mapping[str, str]) -> np.ndarray:
    """Return the count of each task (n_tasks,): 1, or 1/n for one of n parts of an aggregate."""
    parts = types.parts if isinstance(types, TaskTypes) else {}
    counts = Counter(parts.get(task, task) for task in tasks)
    return np.array([1.0 / counts[parts.get(task, task)] for task in tasks])
