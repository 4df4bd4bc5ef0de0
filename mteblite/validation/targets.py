"""Targets of predictions: single tasks, their mean, and the mean over type means.

`macro` is mteb's Mean(TaskType): the mean over types of the mean over the tasks of a type; `mean`
is Mean(Task). Both exist only for a model with every task (mteb
`benchmarks/_benchmark_metrics.py`). The parts of an aggregate together count as one task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mteblite.suites.means import macro_weights as macro_weights
from mteblite.suites.task_types import shares


def target_weights(
    tasks: Sequence[str], task_types: Mapping[str, str], *, with_types: bool = False
) -> dict[str, np.ndarray]:
    """Return the task weights (n_tasks,) of `macro`, `mean`, each `task:`, and each `type:`.

    Raises:
        ValueError: a task has no type, or there is no task.
    """
    if not tasks:
        raise ValueError("a suite needs at least one task")
    missing = [task for task in tasks if task not in task_types]
    if missing:
        raise ValueError(f"task {missing[0]!r} has no type among {len(task_types)} known tasks")
    n, share = len(tasks), shares(tasks, task_types)
    targets = {"macro": macro_weights(tasks, task_types), "mean": share / share.sum()}
    if with_types:
        kinds = np.array([task_types[task] for task in tasks])
        for kind in sorted({task_types[task] for task in tasks}):
            own = np.where(kinds == kind, share, 0.0)
            targets[f"type:{kind}"] = own / own.sum()
    for place, task in enumerate(tasks):
        targets[f"task:{task}"] = np.eye(n)[place]
    return targets


def combine(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted means (...,) of (..., n_tasks); NaN where a needed task is missing."""
    needed = weights > 0
    return scores[..., needed] @ weights[needed]
