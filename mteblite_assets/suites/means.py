"""How much a task counts in a suite's means.

`macro` is mteb's Mean(TaskType): the mean over types of the mean over the tasks of a type (mteb
`benchmarks/_benchmark_metrics.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mteblite_assets.suites.task_types import shares


def macro_weights(tasks: Sequence[str], task_types: Mapping[str, str]) -> np.ndarray:
    """Return the weight of each task in the macro mean (n_tasks,), summing to 1."""
    share = shares(tasks, task_types)
    kinds = np.array([task_types[task] for task in tasks])
    weights = np.zeros(len(tasks))
    for kind in set(kinds):
        weights[kinds == kind] = share[kinds == kind] / share[kinds == kind].sum()
    return weights / len(set(kinds))
