"""Weights of the tasks in a suite's means.

`macro` is mteb's Mean(TaskType): the mean over types of the mean over the tasks of a type (mteb
`benchmarks/_benchmark_metrics.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mteblite.suites.suite_file import HEADLINES
from mteblite.suites.task_types import shares

ENDS = {"macro_mean": ("macro_lower", "macro_upper"), "mean": ("mean_lower", "mean_upper")}
"""Names of the ends of each mean's interval."""


def means_in_order(headline: str) -> tuple[str, ...]:
    """Return the names of a suite's means (`macro_mean`, `mean`), its headline first.

    Raises:
        ValueError: the headline is not one of them.
    """
    if headline not in HEADLINES:
        raise ValueError(f"headline {headline!r} is unknown; allowed: {', '.join(HEADLINES)}")
    return (headline, *(name for name in HEADLINES if name != headline))


def macro_weights(tasks: Sequence[str], task_types: Mapping[str, str]) -> np.ndarray:
    """Return the weight of each task in the macro mean (n_tasks,), summing to 1."""
    share = shares(tasks, task_types)
    kinds = np.array([task_types[task] for task in tasks])
    weights = np.zeros(len(tasks))
    for kind in set(kinds):
        weights[kinds == kind] = share[kinds == kind] / share[kinds == kind].sum()
    return weights / len(set(kinds))
