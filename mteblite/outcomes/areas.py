"""Area under the precision-recall curve, under two names for its two definitions."""

from __future__ import annotations

import numpy as np


def precision_recall_area(
    name: str, labels: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Return the area under a precision-recall curve.

    Args:
        name: `auprc`, scikit-learn's average precision, which does not interpolate; or
            `auprc_trapezoid`, the trapezoidal area from recall 0 on, which is larger.
        labels: (n,) true or 1 for relevant.
        scores: (n,) larger is more relevant; ties are one step of the curve.
        weights: (n,) positive; None: all equal.

    Returns:
        NaN without a relevant one.
    """
    from sklearn import metrics

    if not np.any(labels):
        return float("nan")
    if name == "auprc":
        return float(metrics.average_precision_score(labels, scores, sample_weight=weights))
    precision, recall, _ = metrics.precision_recall_curve(labels, scores, sample_weight=weights)
    return float(metrics.auc(recall, precision))
