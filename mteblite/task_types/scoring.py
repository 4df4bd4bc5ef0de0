"""Score one model on one pool: the item outcomes, the pool score, and what set metrics need."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.outcomes.pool_score import PoolScore
from mteblite.pools.pool import Pool
from mteblite.task_types import registry
from mteblite.task_types.registry import find_type
from mteblite.task_types.task_type import SetMetric


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Score a model on a pool.

    Args:
        pool: the pool.
        vectors: (n_texts, dim) float32, row i is the vector of `pool.texts.text[i]`.
        similarity: how mteb compares this model's vectors: `cosine`, `dot`, `euclidean` or
            `manhattan`.

    Raises:
        ValueError: the vectors are not one per text or not finite, or the type lacks a metric of
            the pool.
    """
    if vectors.ndim != 2 or len(vectors) != len(pool.texts):
        raise ValueError(
            f"{pool.meta['task']}: got vectors of shape {vectors.shape} for {len(pool.texts)} "
            "texts; expected one row per text"
        )
    if not np.isfinite(vectors).all():
        raise ValueError(f"{pool.meta['task']}: vectors hold NaN or infinite values")
    task_type = find_type(pool.task_type)
    task_type.check_metrics(str(pool.meta["task"]), pool.metric_names)
    return task_type.score_pool(pool, vectors, similarity=similarity)


def observe(pool: Pool, vectors: np.ndarray) -> np.ndarray:
    """Return the (n_items, d) observations of a set-metric pool, without scoring it."""
    return _set_metric(pool.task_type).observe(pool, vectors)


def set_statistic(
    task_type: str, observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray
) -> float:
    """Return the official statistic of a set-metric type on a few items.

    Args:
        task_type: a type with a set metric.
        observations: (k, d) rows of the chosen items.
        items: their rows of `pool.items` (hf_subset, split, stratum, gold).
        weights: (k,) selection weights, positive, summing to 1.

    Returns:
        The statistic, a mean over the cells present; NaN where it is undefined
        (e.g. average precision without a positive).
    """
    return _set_metric(task_type).statistic(observations, items, weights)


def surrogate_statistic(
    task_type: str, observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray
) -> float:
    """Return the surrogate of a set metric on a few items; arguments as in `set_statistic`.

    Average precision, Spearman and V-measure of 20 items have a high variance. A surrogate measures
    the same quality with less variance, and calibration maps it to the official statistic.

    Returns:
        The mean over cells; NaN where a cell has one class, constant values, or a label per
        document.
    """
    return _set_metric(task_type).surrogate(observations, items, weights)


def check_selection(task_type: str, items: pd.DataFrame) -> None:
    """Refuse a selection on which a set metric does not depend on the model.

    Args:
        task_type: any type; only those with a set metric refuse selections.
        items: the k rows of the selected items in `pool.items`.

    Raises:
        ValueError: names what is wrong with the selection.
    """
    set_metric = find_type(task_type).set_metric
    if set_metric is not None:
        set_metric.check_selection(items)


def _set_metric(task_type: str) -> SetMetric:
    found = find_type(task_type).set_metric
    if found is None:
        having = ", ".join(t.name for t in registry.TASK_TYPES if t.set_metric is not None)
        raise ValueError(
            f"task type {task_type!r} has no set statistic, because its score is the mean of item "
            f"outcomes; types that have one: {having}"
        )
    return found
