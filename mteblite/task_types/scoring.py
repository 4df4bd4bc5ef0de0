"""Score one model on one pool: the item outcomes, the pool score, and what set metrics need.

One module per task type does the work; this one picks it by the pool's type.
"""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np
import pandas as pd

from mteblite.outcomes.pool_score import PoolScore
from mteblite.pools.pool import Pool

MODULES = {
    "Retrieval": "retrieval",
    "Reranking": "retrieval",
    "Classification": "classification",
    "PairClassification": "pair_classification",
    "STS": "sts",
    "Clustering": "clustering",
    "Summarization": "summarization",
    "BitextMining": "bitext_mining",
}


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Score a model on a pool.

    Args:
        pool: the pool.
        vectors: (n_texts, dim) float32, row i is the vector of `pool.texts.text[i]`.
        similarity: how mteb compares this model's vectors: `cosine`, `dot`, `euclidean` or
            `manhattan`.

    Raises:
        ValueError: the vectors do not fit the pool's texts, or are not finite.
    """
    if vectors.ndim != 2 or len(vectors) != len(pool.texts):
        raise ValueError(
            f"{pool.meta['task']}: got vectors of shape {vectors.shape} for {len(pool.texts)} "
            "texts; expected one row per text"
        )
    if not np.isfinite(vectors).all():
        raise ValueError(f"{pool.meta['task']}: vectors hold NaN or infinite values")
    scored: PoolScore = _module(pool.task_type).score_pool(pool, vectors, similarity=similarity)
    return scored


def observe(pool: Pool, vectors: np.ndarray) -> np.ndarray:
    """Return the (n_items, d) observations of a set-metric pool, without scoring it."""
    return _module(pool.task_type).observe(pool, vectors)


def set_statistic(
    task_type: str, observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray
) -> float:
    """Return the official statistic of a set-metric type on a few items.

    Args:
        task_type: `STS`, `PairClassification` or `Clustering`.
        observations: (k, d) rows of the chosen items.
        items: their rows of `pool.items` (hf_subset, split, stratum, gold).
        weights: (k,) selection weights, positive, summing to 1.

    Returns:
        The statistic, a mean over the cells present; NaN where it is undefined
        (e.g. average precision without a positive).
    """
    return _module(task_type).set_statistic(observations, items, weights)


def _module(task_type: str) -> ModuleType:
    if task_type not in MODULES:
        raise ValueError(
            f"task type {task_type!r} has no outcomes; supported: {', '.join(MODULES)}"
        )
    return importlib.import_module(f"mteblite.task_types.{MODULES[task_type]}.outcomes")
