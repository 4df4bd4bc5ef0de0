"""What a prediction is judged on: single tasks, their mean, the mean over type means.

`macro` is mteb's Mean(TaskType): the mean over types of the mean over the tasks of a type; `mean`
is Mean(Task). Both exist only for a model with every task (mteb
`benchmarks/_benchmark_metrics.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np


def macro_weights(tasks: Sequence[str], task_types: Mapping[str, str]) -> np.ndarray:
    """Return the weight of each task in the macro mean (n_tasks,), summing to 1."""
    counts = Counter(task_types[task] for task in tasks)
    return np.array([1.0 / (len(counts) * counts[task_types[task]]) for task in tasks])


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
    n = len(tasks)
    targets = {"macro": macro_weights(tasks, task_types), "mean": np.full(n, 1.0 / n)}
    if with_types:
        kinds = np.array([task_types[task] for task in tasks])
        for kind in sorted({task_types[task] for task in tasks}):
            targets[f"type:{kind}"] = (kinds == kind) / (kinds == kind).sum()
    for place, task in enumerate(tasks):
        targets[f"task:{task}"] = np.eye(n)[place]
    return targets


def combine(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted means (...,) of (..., n_tasks); NaN where a needed task is missing."""
    needed = weights > 0
    return scores[..., needed] @ weights[needed]
