"""Outcomes of STS: how far the rank of a pair's similarity is from the rank of its gold score.

The official score is the Spearman (or Pearson) correlation of the gold scores with a similarity,
per cell; it is a statistic of the set. Similarities are computed by the same scikit-learn
functions as in mteb/_evaluators/any_sts_evaluator.py.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.outcomes.cells import align, cells_of, gold_of, mean_of_cells
from mteblite.outcomes.pool_score import PoolScore
from mteblite.pools.pool import Pool

METRICS = (
    "spearman",
    "pearson",
    *(f"{s}_{c}" for s in ("cosine", "manhattan", "euclidean") for c in ("spearman", "pearson")),
)


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Return outcomes 1 - |percentile of cosine - percentile of gold| in [0, 1], and the score.

    Percentiles are mid-ranks within the cell, (rank - 1/2) / n.

    Args:
        pool: the pool.
        vectors: (n_texts, dim).
        similarity: the model's own, behind the metrics `spearman` and `pearson`.
    """
    names = pool.metric_names
    first, second = _sides(pool, vectors)
    cosine = _similarity("cosine", first, second)
    gold = pool.items["gold"].to_numpy(dtype=float)
    outcomes = np.empty(len(pool.items))
    cells = list(cells_of(pool.items))
    for rows in cells:
        outcomes[rows] = 1 - np.abs(percentiles(cosine[rows]) - percentiles(gold[rows]))
    values = {
        name: mean_of_cells(
            [
                _correlation(_named(name, similarity), first[rows], second[rows], gold[rows])
                for rows in cells
            ]
        )
        for name in names
    }
    return PoolScore.of(pool, outcomes, values, cosine[:, None].astype(np.float32))


def observe(pool: Pool, vectors: np.ndarray) -> np.ndarray:
    """Return the (n_items, 1) cosines."""
    first, second = _sides(pool, vectors)
    return _similarity("cosine", first, second)[:, None].astype(np.float32)


def set_statistic(observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray) -> float:
    """Return the weighted Spearman correlation of cosine and gold, a mean over cells.

    Ranks are weighted mid-ranks (the mass below, and half of the mass of the ties); their
    weighted Pearson correlation is Spearman's rho where weights are equal.

    Args:
        observations: (k, 1) cosines.
        items: (k rows) hf_subset, split, gold.
        weights: (k,) positive.

    Returns:
        NaN where a cell has fewer than two pairs or all its gold scores or cosines are equal.
    """
    gold = gold_of(items)
    cosine = np.asarray(observations, dtype=float)[:, 0]
    weights = np.asarray(weights, dtype=float)
    return mean_of_cells(
        [weighted_spearman(cosine[r], gold[r], weights[r]) for r in cells_of(items)]
    )


def surrogate(observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray) -> float:
    """Return the weighted Pearson correlation of cosine and gold, a mean over cells.

    Arguments and undefined values as in `set_statistic`.
    """
    gold, weights = gold_of(items), np.asarray(weights, dtype=float)
    cosine = np.asarray(observations, dtype=float)[:, 0]
    return mean_of_cells(
        [_pearson(cosine[r], gold[r], weights[r] / weights[r].sum()) for r in cells_of(items)]
    )


def percentiles(values: np.ndarray) -> np.ndarray:
    """Return the mid-rank percentiles (rank - 1/2) / n in (0, 1) of an array."""
    return weighted_ranks(values, np.full(len(values), 1 / max(len(values), 1)))


def weighted_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return for each value the share of mass below it plus half of the mass equal to it."""
    _, group = np.unique(values, return_inverse=True)
    mass = np.bincount(group, weights=weights) / weights.sum()
    return (np.cumsum(mass) - mass / 2)[group]


def weighted_spearman(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted Pearson correlation of weighted mid-ranks; NaN if a side is constant."""
    w = weights / weights.sum()
    return _pearson(weighted_ranks(first, w), weighted_ranks(second, w), w)


def _pearson(first: np.ndarray, second: np.ndarray, w: np.ndarray) -> float:
    """Return the correlation under weights that sum to 1; NaN if a side is constant."""
    a, b = first - w @ first, second - w @ second
    variance = (w @ a**2) * (w @ b**2)
    return float(w @ (a * b) / np.sqrt(variance)) if variance > 1e-24 else float("nan")


def _sides(pool: Pool, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pairs = align(pool.frames["pairs"], pool.items)
    return vectors[pairs["first_row"].to_numpy()], vectors[pairs["second_row"].to_numpy()]


def _similarity(name: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    from sklearn.metrics import pairwise

    if name == "cosine":
        return np.asarray(1 - pairwise.paired_cosine_distances(first, second))
    if name == "dot":
        return np.asarray(np.vecdot(first, second))
    if name == "manhattan":
        return np.asarray(-pairwise.paired_manhattan_distances(first, second))
    return np.asarray(-pairwise.paired_euclidean_distances(first, second))


def _named(metric: str, own: str) -> str:
    """Return a metric with its similarity: bare names are by the model's own."""
    return metric if "_" in metric else f"{own}_{metric}"


def _correlation(metric: str, first: np.ndarray, second: np.ndarray, gold: np.ndarray) -> float:
    from scipy import stats

    similarity, _, kind = metric.rpartition("_")
    values = _similarity(similarity, first, second)
    if len(gold) < 2 or np.ptp(gold) == 0 or np.ptp(values) == 0:
        return float("nan")
    function = stats.spearmanr if kind == "spearman" else stats.pearsonr
    return float(function(gold, values)[0])
