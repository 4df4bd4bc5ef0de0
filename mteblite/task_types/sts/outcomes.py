"""Outcomes of STS: how close the rank of a pair's similarity is to the rank of its gold score.

The official score is the Spearman (or Pearson) correlation of the gold scores with a similarity in
each cell. It is a statistic of the set. The similarities come from the same scikit-learn functions
as in mteb/_evaluators/any_sts_evaluator.py.
"""

from __future__ import annotations

from collections.abc import Callable

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

    Percentiles are mid-ranks within the cell, (rank - 1/2) / n. The metrics `spearman` and
    `pearson` use the model's own similarity.
    """
    first, second = pair_vectors(pool, vectors)
    cosine = pair_similarity("cosine", first, second)
    gold = pool.items["gold"].to_numpy(dtype=float)
    outcomes = np.empty(len(pool.items))
    cells = cells_of(pool.items)
    for rows in cells:
        outcomes[rows] = 1 - np.abs(percentiles(cosine[rows]) - percentiles(gold[rows]))
    means = {}
    for name in pool.metric_names:
        full_name = name if "_" in name else f"{similarity}_{name}"
        means[name] = mean_of_cells(
            [_correlation(full_name, first[rows], second[rows], gold[rows]) for rows in cells]
        )
    return PoolScore.of(pool, outcomes, means, cosine[:, None].astype(np.float32))


def observe(pool: Pool, vectors: np.ndarray) -> np.ndarray:
    """Return the (n_items, 1) cosines."""
    return pair_similarity("cosine", *pair_vectors(pool, vectors))[:, None].astype(np.float32)


def set_statistic(observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray) -> float:
    """Return the weighted Spearman correlation of cosine and gold, a mean over cells.

    With equal weights it is Spearman's rho. It is NaN where a cell has fewer than two pairs, or
    where all its gold scores or all its cosines are equal.
    """
    return _mean_correlation(weighted_spearman, observations, items, weights)


def surrogate(observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray) -> float:
    """Return the weighted Pearson correlation; undefined where `set_statistic` is."""
    return _mean_correlation(_weighted_pearson, observations, items, weights)


def _mean_correlation(
    correlation: Callable[[np.ndarray, np.ndarray, np.ndarray], float],
    observations: np.ndarray,
    items: pd.DataFrame,
    weights: np.ndarray,
) -> float:
    gold, weights = gold_of(items), np.asarray(weights, dtype=float)
    cosine = np.asarray(observations, dtype=float)[:, 0]
    return mean_of_cells([correlation(cosine[r], gold[r], weights[r]) for r in cells_of(items)])


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


def _weighted_pearson(first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> float:
    return _pearson(first, second, weights / weights.sum())


def _pearson(first: np.ndarray, second: np.ndarray, w: np.ndarray) -> float:
    """Return the correlation under weights that sum to 1; NaN if a side is constant."""
    a, b = first - w @ first, second - w @ second
    variance = (w @ a**2) * (w @ b**2)
    return float(w @ (a * b) / np.sqrt(variance)) if variance > 1e-24 else float("nan")


def pair_vectors(pool: Pool, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the (n_items, dim) vectors of the first and of the second text of each pair."""
    pairs = align(pool.frames["pairs"], pool.items)
    return vectors[pairs["first_row"].to_numpy()], vectors[pairs["second_row"].to_numpy()]


def pair_similarity(name: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the (n,) similarities of vector pairs (n, dim); distances count negatively."""
    from sklearn.metrics import pairwise

    if name == "cosine":
        return np.asarray(1 - pairwise.paired_cosine_distances(first, second))
    if name == "dot":
        return np.asarray(np.vecdot(first, second))
    if name == "manhattan":
        return np.asarray(-pairwise.paired_manhattan_distances(first, second))
    return np.asarray(-pairwise.paired_euclidean_distances(first, second))


def _correlation(metric: str, first: np.ndarray, second: np.ndarray, gold: np.ndarray) -> float:
    from scipy import stats

    similarity, _, kind = metric.rpartition("_")
    values = pair_similarity(similarity, first, second)
    if len(gold) < 2 or np.ptp(gold) == 0 or np.ptp(values) == 0:
        return float("nan")
    function = stats.spearmanr if kind == "spearman" else stats.pearsonr
    return float(function(gold, values)[0])
