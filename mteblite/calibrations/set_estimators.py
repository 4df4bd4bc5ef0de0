"""Statistics of set-metric tasks on the selected items: the official one, or a calmer surrogate.

Average precision, Spearman and V-measure of 20 items are nearly noise (docs/methods.md, Noise of
set metrics). Each surrogate measures the same quality with less variance; calibration maps it to
the official one.

- PairClassification: area under the ROC curve of cosine, positive against negative pairs.
- STS: Pearson correlation of cosine similarity with gold.
- Clustering: area under the ROC curve of cosine, pairs of documents of one label against pairs of
  two; needs few labels with several documents each, which the selectors give.

All are weighted by the product of selection weights, and means over cells (split, subset).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from mteblite.outcomes.cells import cells_of, facts_of, gold_of, mean_of_cells
from mteblite.task_types.clustering.pool import LEVEL_SEPARATOR

COSINE = 1
"""Column of cosine similarity in the observations of pairs."""


def surrogate_statistic(
    task_type: str, observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray
) -> float:
    """Return the surrogate of a set metric on a few items.

    Args:
        task_type: `STS`, `PairClassification` or `Clustering`.
        observations: (k, d) rows of the chosen items; see `outcomes.scoring.PoolScore`.
        items: their rows: hf_subset, split, stratum, gold.
        weights: (k,) selection weights.

    Returns:
        The mean over cells; NaN where a cell has one class, constant values, or a label per
        document.

    Raises:
        ValueError: the type has no surrogate.
    """
    if task_type not in SURROGATES:
        allowed = ", ".join(SURROGATES)
        raise ValueError(f"task type {task_type!r} has no surrogate statistic; allowed: {allowed}")
    function = SURROGATES[task_type]
    values = np.asarray(observations, dtype=float)
    mass = np.asarray(weights, dtype=float)
    truth = facts_of(items, _labels) if task_type == "Clustering" else gold_of(items)
    return mean_of_cells(
        [function(values[rows], truth[rows], mass[rows]) for rows in cells_of(items)]
    )


def pair_auc(observations: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Return the share of (positive, negative) pairs in the right order; ties count half."""
    scores = observations[:, min(COSINE, observations.shape[1] - 1)]
    return weighted_auc(scores, labels > 0.5, weights)


def gold_correlation(observations: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted Pearson correlation of similarity and gold."""
    w = weights / weights.sum()
    x, y = observations[:, 0], gold
    x, y = x - w @ x, y - w @ y
    variance = (w @ x**2) * (w @ y**2)
    return float(w @ (x * y) / np.sqrt(variance)) if variance > 1e-24 else float("nan")


def same_label_auc(observations: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Return the share of (same-label, other-label) pairs of documents in the right order.

    Args:
        observations: (k, dim) vectors.
        labels: (k,) codes.
        weights: (k,) positive.
    """
    size = np.linalg.norm(observations, axis=1, keepdims=True)
    unit = observations / np.maximum(size, 1e-12)
    first, second = np.triu_indices(len(labels), 1)
    similarity = (unit @ unit.T)[first, second]
    return weighted_auc(
        similarity, labels[first] == labels[second], weights[first] * weights[second]
    )


def weighted_auc(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted area under the ROC curve; NaN with one class only.

    Equals `sklearn.metrics.roc_auc_score(positive, scores, sample_weight=weights)`.
    """
    if positive.all() or not positive.any():
        return float("nan")
    _, group = np.unique(np.round(scores, 12), return_inverse=True)
    above = np.bincount(group, weights=weights * positive)
    below = np.bincount(group, weights=weights * ~positive)
    lower = np.cumsum(below) - below / 2.0
    return float((above * lower).sum() / (above.sum() * below.sum()))


def check_not_degenerate(task_type: str, items: pd.DataFrame) -> None:
    """Refuse a selection on which V-measure is 1 for every model.

    Args:
        task_type: mteb's type; only Clustering is checked.
        items: (k rows) of the selected items: hf_subset, split, stratum.

    Raises:
        ValueError: a cell has several documents, each of another label.
    """
    if task_type != "Clustering":
        return
    for rows in cells_of(items):
        # Of hierarchical labels the top level repeats first.
        labels = [str(s).split(LEVEL_SEPARATOR)[0] for s in items["stratum"].to_numpy()[rows]]
        if len(labels) > 1 and len(set(labels)) == len(labels):
            raise ValueError(
                f"the {len(labels)} selected documents have {len(labels)} different labels: "
                "V-measure is then 1 for every model; raise k, or select with strat or anchorset, "
                "which take several documents of few labels"
            )


def _labels(items: pd.DataFrame) -> np.ndarray:
    return np.unique(items["stratum"].astype(str).to_numpy(), return_inverse=True)[1]


SURROGATES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], float]] = {
    "PairClassification": pair_auc,
    "STS": gold_correlation,
    "Clustering": same_label_auc,
}
