"""Agreement of predicted with actual scores over models; NaN where it is not defined."""

from __future__ import annotations

import numpy as np

RESOLVABLE_GAP = 0.005
"""Half a point: pairs closer than this are not worth ordering (MTEB-lite method section 5)."""
GUARD = 1e-9


def kendall_tau(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Return Kendall's tau-b of (n,) scores; NaN with under 2 models or a constant side."""
    upper = np.triu_indices(len(actual), 1)
    a = np.sign(np.subtract.outer(actual, actual)[upper])
    p = np.sign(np.subtract.outer(predicted, predicted)[upper])
    size = np.sqrt(np.abs(a).sum() * np.abs(p).sum())
    return float((a * p).sum() / size) if size > 0 else float("nan")


def kendall_tau_resolvable(
    predicted: np.ndarray, actual: np.ndarray, gap: float = RESOLVABLE_GAP
) -> float:
    """Return (concordant - discordant) / pairs over pairs at least `gap` apart in truth.

    A tie in the prediction counts 0 above and 1 below the line. NaN without such pairs.
    """
    upper = np.triu_indices(len(actual), 1)
    difference = np.subtract.outer(actual, actual)[upper]
    resolvable = np.abs(difference) >= gap - GUARD
    if not resolvable.any():
        return float("nan")
    p = np.sign(np.subtract.outer(predicted, predicted)[upper])
    return float((np.sign(difference) * p)[resolvable].mean())


def pearson(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Return the correlation; NaN with under 2 models or a constant side."""
    if len(actual) < 2:
        return float("nan")
    p, a = predicted - predicted.mean(), actual - actual.mean()
    size = np.sqrt((p**2).sum() * (a**2).sum())
    constant = np.ptp(predicted) < 1e-12 or np.ptp(actual) < 1e-12
    return float("nan") if constant else float((p * a).sum() / size)


def mae(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Return the mean absolute error; NaN without models."""
    return float(np.abs(predicted - actual).mean()) if len(actual) else float("nan")


def bias(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Return the mean of predicted minus actual; NaN without models."""
    return float((predicted - actual).mean()) if len(actual) else float("nan")
