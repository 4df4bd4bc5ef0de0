"""The interface of selectors: functions from evidence to positions and weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit
from mteblite.task_types.scoring import surrogate_statistic

Selected = tuple[np.ndarray, np.ndarray]
"""Positions (k,) of distinct items in rank order, and their positive weights (k,) with sum 1."""

Statistic = Callable[[str, np.ndarray, pd.DataFrame, np.ndarray], float]
"""(task type, observations (k, d), items, weights (k,)) -> the statistic, NaN = undefined."""

Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Positions (k,), weights (k,) -> uncalibrated estimates of the training models (n_models,)."""

Selector = Callable[[TaskEvidence, ItemFit, int, np.random.Generator, Measure], Selected]
"""(evidence of the training models, fit on them, k < n_items, generator, their estimates) ->
Selected."""


def measure_of(evidence: TaskEvidence) -> Measure:
    """Return the estimates of a task's models on some items: means, or the surrogate of the set."""

    def measure(positions: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if evidence.kind == "per_item":
            return weighted_mean(evidence.outcomes[:, positions], weights)
        return set_statistics(evidence, positions, weights, surrogate_statistic)

    return measure


def set_statistics(
    evidence: TaskEvidence, positions: np.ndarray, weights: np.ndarray, statistic: Statistic
) -> np.ndarray:
    """Return a set statistic of every model on the items at some positions (n_models,).

    Raises:
        ValueError: the task has no observations.
    """
    if evidence.observations is None:
        raise ValueError(f"{evidence.task}: a set metric needs observations, found none")
    rows = evidence.items.iloc[positions].reset_index(drop=True)
    return np.array(
        [statistic(evidence.task_type, o[positions], rows, weights) for o in evidence.observations]
    )


def weighted_mean(outcomes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the mean over the observed items of (n_models, k); weights are renormalised."""
    seen = np.isfinite(outcomes)
    if seen.all():
        return np.asarray(outcomes @ (weights / weights.sum()))
    mass = seen @ weights
    total = np.where(seen, outcomes, 0.0) @ weights
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), np.nan)


def pool_weights(evidence: TaskEvidence) -> np.ndarray:
    """Return the pool weights (n_items,), normalised to sum 1."""
    return np.asarray(evidence.of_items("pool_weights", lambda: _normalised(evidence)))


def _normalised(evidence: TaskEvidence) -> np.ndarray:
    weights = evidence.items["pool_weight"].to_numpy(dtype=float)
    weights = weights / weights.sum()
    weights.flags.writeable = False  # all callers share this array
    return weights
