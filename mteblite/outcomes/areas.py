"""Areas under the precision-recall curve, in two definitions, and under the ROC curve."""

from __future__ import annotations

import numpy as np

AREAS = ("auprc", "auprc_trapezoid")
"""Names of the areas: scikit-learn's average precision, which does not interpolate, and the
trapezoidal area from recall 0 on, which is larger."""


def precision_recall_area(
    name: str, labels: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Return one of AREAS in [0, 1]; NaN without a relevant label (true or 1).

    Labels, scores and weights are (n,). Scores are higher for more relevant pairs, and ties are one
    step of the curve. Weights are positive; None = all equal.
    """
    from sklearn import metrics

    if not np.any(labels):
        return float("nan")
    if name == "auprc":
        return float(metrics.average_precision_score(labels, scores, sample_weight=weights))
    precision, recall, _ = metrics.precision_recall_curve(labels, scores, sample_weight=weights)
    return float(metrics.auc(recall, precision))


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
