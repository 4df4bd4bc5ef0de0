"""Outcomes of PairClassification: whether a pair is on its side of the best cosine threshold.

The official score is average precision in each cell, the maximum over mteb's similarity functions
(mteb/_evaluators/pair_classification_evaluator.py). It is a statistic of the set. It is weighted
by `pool_weight`, because a balanced pool does not have the label prior of the task.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.outcomes.areas import AREAS, precision_recall_area, weighted_auc
from mteblite.outcomes.cells import cells_of, facts_of, gold_of, mean_of_cells
from mteblite.outcomes.pool_score import PoolScore
from mteblite.outcomes.similarity import paired, prepare
from mteblite.pools.pool import Pool
from mteblite.task_types.sts.outcomes import pair_similarity, pair_vectors

SIMILARITIES = ("similarity", "cosine", "manhattan", "euclidean", "dot")
"""Columns of the observations: larger is more similar."""
COSINE = SIMILARITIES.index("cosine")
MEASURES = ("ap", "accuracy", "f1", "precision", "recall")
METRICS = (*(f"{s}_{m}" for s in ("max", *SIMILARITIES) for m in MEASURES), *AREAS)


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Return outcomes 1 (right side of the accuracy-optimal cosine threshold) or 0, and the score.

    The metrics `similarity_...` use the model's own similarity.
    """
    observations = observe(pool, vectors)
    labels = pool.items["gold"].to_numpy(dtype=int)
    weights = pool.items["pool_weight"].to_numpy(dtype=float)
    outcomes = np.empty(len(pool.items))
    cells = cells_of(pool.items)
    for rows in cells:
        cosine = observations[rows, COSINE]
        threshold = best_threshold(cosine, labels[rows], weights[rows])
        outcomes[rows] = (cosine > threshold) == (labels[rows] == 1)
    means = {}
    for name in pool.metric_names:
        full_name = name if similarity == "cosine" else name.replace("similarity", similarity)
        means[name] = mean_of_cells(
            [_metric(full_name, observations[r], labels[r], weights[r]) for r in cells]
        )
    return PoolScore.of(pool, outcomes, means, observations)


def observe(pool: Pool, vectors: np.ndarray) -> np.ndarray:
    """Return the (n_items, 5) similarities, columns SIMILARITIES."""
    first, second = pair_vectors(pool, vectors)
    columns = [
        paired(prepare(first, "cosine"), prepare(second, "cosine"), "cosine"),
        *(pair_similarity(name, first, second) for name in SIMILARITIES[1:]),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def set_statistic(observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray) -> float:
    """Return the weighted average precision, maximum over similarities, a mean over cells.

    Equal weights hold no label prior. `pool_weight`, the mass of a pair's label in the task, then
    takes their place. Unequal weights are used as they are: an anchor's is the pool mass of its
    cluster. The statistic is NaN where a cell has no positive or no negative pair.
    """
    weights = np.asarray(weights, dtype=float)
    if np.ptp(weights) <= 1e-12 * weights.max(initial=0):
        weights = facts_of(items, _pool_weight)
    labels = gold_of(items).astype(int)
    return mean_of_cells(
        [_metric("max_ap", observations[r], labels[r], weights[r]) for r in cells_of(items)]
    )


def surrogate(observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray) -> float:
    """Return the share of (positive, negative) pairs that cosine orders rightly; ties count half.

    It is the weighted area under the ROC curve, and NaN where a cell has one label only.
    """
    values, weights = np.asarray(observations, dtype=float), np.asarray(weights, dtype=float)
    cosine = values[:, min(COSINE, values.shape[1] - 1)]
    positive = gold_of(items) > 0.5
    return mean_of_cells(
        [weighted_auc(cosine[r], positive[r], weights[r]) for r in cells_of(items)]
    )


def _pool_weight(items: pd.DataFrame) -> np.ndarray:
    return items["pool_weight"].to_numpy(dtype=float)


def average_precision(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted average precision, sum over thresholds of (recall step) x precision.

    Equals `sklearn.metrics.average_precision_score(labels, scores, sample_weight=weights)`.

    Args:
        scores: (n,) larger is more similar.
        labels: (n,) 0 or 1.
        weights: (n,) positive.

    Returns:
        NaN without a positive or without a negative.
    """
    if not 0 < labels.sum() < len(labels):
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(weights[order] * labels[order])
    total = np.cumsum(weights[order])
    last = np.r_[np.flatnonzero(np.diff(scores[order])), len(scores) - 1]
    steps = np.diff(hits[last], prepend=0.0)
    return float(np.sum(steps * hits[last] / total[last]) / hits[-1])


def best_threshold(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Return the threshold of the rule `score > threshold` with the best weighted accuracy.

    Thresholds lie between neighbouring distinct scores, as in mteb. Of equally good ones the
    highest is returned.
    """
    order = np.argsort(-scores, kind="stable")
    ordered, mass = scores[order].astype(float), weights[order] / weights.sum()
    signed = np.where(labels[order] == 1, mass, -mass)
    right = mass[labels[order] == 0].sum() + np.cumsum(signed)
    last = np.r_[np.flatnonzero(np.diff(ordered)), len(ordered) - 1]
    below = np.r_[ordered[last[:-1] + 1], ordered[-1] - 1.0] if len(last) else ordered
    thresholds = np.r_[ordered[0], (ordered[last] + below) / 2]
    accuracies = np.r_[mass[labels[order] == 0].sum(), right[last]]
    best = int(np.argmax(accuracies > accuracies.max() - 1e-12))
    return float(thresholds[best])


def _metric(name: str, observations: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    if name in AREAS:
        cosine = observations[:, COSINE]
        return precision_recall_area(name, labels, cosine, weights)
    similarity, _, kind = name.rpartition("_")
    chosen = SIMILARITIES if similarity == "max" else (similarity,)
    columns = [observations[:, SIMILARITIES.index(s)] for s in chosen]
    if kind == "ap":
        return max(average_precision(column, labels, weights) for column in columns)
    return max(_best_split(column, labels, weights)[kind] for column in columns)


def _best_split(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """Return the best accuracy, and the best F1 with its precision and recall, over thresholds.

    As in mteb, a threshold lies between two distinct scores: no rule takes all pairs, or none.
    """
    order = np.argsort(-scores, kind="stable")
    mass, positive = weights[order] / weights.sum(), labels[order] == 1
    ends = np.flatnonzero(np.diff(scores[order]))
    hits, taken = np.cumsum(mass * positive), np.cumsum(mass)
    all_hits, hits, taken = hits[-1], hits[ends], taken[ends]
    if not len(ends) or all_hits <= 0:
        return {"accuracy": float(max(1 - taken, default=0.0)), **dict.fromkeys(_F1, 0.0)}
    accuracy = hits + (1 - all_hits) - (taken - hits)
    f1 = 2 * hits / (taken + all_hits)
    best = int(np.argmax(f1))
    parts = (f1[best], hits[best] / taken[best], hits[best] / all_hits)
    return {"accuracy": float(accuracy.max()), **dict(zip(_F1, map(float, parts), strict=True))}


_F1 = ("f1", "precision", "recall")
