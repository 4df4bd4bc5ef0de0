"""Agreement of predicted with actual scores over models; NaN where it is undefined."""

from __future__ import annotations

import numpy as np

RESOLVABLE_GAP = 0.005
"""Half a point: the order of closer pairs does not matter (docs/methods.md, Agreement metrics)."""
GUARD = 1e-9
MIN_PAIRS = 10
MAX_BINS = 40
DETECTED_SHARE = 0.8
"""Share of pairs in the right order at the minimum detectable difference."""


def kendall_tau(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Return Kendall's tau-b of (n,) scores; NaN with under 2 models or a constant side."""
    upper = np.triu_indices(len(actual), 1)
    a = np.sign(np.subtract.outer(actual, actual)[upper])
    p = np.sign(np.subtract.outer(predicted, predicted)[upper])
    size = np.sqrt(np.abs(a).sum() * np.abs(p).sum())
    return float((a * p).sum() / size) if size > 0 else float("nan")


def kendall_tau_resolvable(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Return (concordant - discordant) / pairs over pairs with an actual gap of RESOLVABLE_GAP.

    A tie in the prediction is a pair, neither concordant nor discordant. NaN without such pairs.
    """
    upper = np.triu_indices(len(actual), 1)
    difference = np.subtract.outer(actual, actual)[upper]
    resolvable = np.abs(difference) >= RESOLVABLE_GAP - GUARD
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


def top1_regret(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Return the actual score of the best model minus that of the model with the best prediction.

    Of models with equal predictions the worst counts. NaN without models.
    """
    if len(actual) == 0:
        return float("nan")
    predicted_best = predicted >= predicted.max() - GUARD
    return float(actual.max() - actual[predicted_best].min())


def within_family_tau(predicted: np.ndarray, actual: np.ndarray, families: np.ndarray) -> float:
    """Return (concordant - discordant) / pairs over pairs of one family; NaN without such pairs.

    This metric is for comparing merges of one base, because pairs of different families are easy to
    order (docs/methods.md, Agreement metrics). Predicted ties count 0; actual ties are left out.
    """
    upper = np.triu_indices(len(actual), 1)
    difference = np.subtract.outer(actual, actual)[upper]
    chosen = (np.equal.outer(families, families)[upper]) & (np.abs(difference) > GUARD)
    if not chosen.any():
        return float("nan")
    p = np.sign(np.subtract.outer(predicted, predicted)[upper])
    return float((np.sign(difference) * p)[chosen].mean())


def minimum_detectable_difference(predicted: np.ndarray, actual: np.ndarray) -> float:
    """Return the smallest actual gap from which DETECTED_SHARE of pairs are in the right order.

    MDAD of arXiv 2510.08730: pairs are sorted by actual gap and divided into at most MAX_BINS bins,
    with an isotonic regression of the share in the right order.

    Returns:
        The gap; 0 where the closest pairs already reach the share, NaN with under MIN_PAIRS pairs
        or where no gap suffices.
    """
    upper = np.triu_indices(len(actual), 1)
    difference = np.subtract.outer(actual, actual)[upper]
    if len(difference) < MIN_PAIRS:
        return float("nan")
    right = 0.5 * (1.0 + np.sign(np.subtract.outer(predicted, predicted)[upper] * difference))
    gap = np.abs(difference)
    order = np.argsort(gap, kind="stable")
    bins = np.array_split(order, min(MAX_BINS, len(order) // 5))
    rising = _isotonic(
        np.array([right[b].mean() for b in bins]), np.array([float(len(b)) for b in bins])
    )
    enough = np.flatnonzero(rising >= DETECTED_SHARE - GUARD)
    if len(enough) == 0:
        return float("nan")
    return 0.0 if enough[0] == 0 else float(gap[bins[enough[0]]].min())


def _isotonic(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the nearest non-decreasing sequence, by pooling adjacent violators."""
    level: list[float] = []
    mass: list[float] = []
    count: list[int] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        level.append(value)
        mass.append(weight)
        count.append(1)
        while len(level) > 1 and level[-2] > level[-1]:
            total = mass[-2] + mass[-1]
            level[-2] = (level[-2] * mass[-2] + level[-1] * mass[-1]) / total
            mass[-2], count[-2] = total, count[-2] + count[-1]
            del level[-1], mass[-1], count[-1]
    return np.repeat(level, count)
