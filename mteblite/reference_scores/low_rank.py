"""Scores that do not fit a model's other scores: residuals of a robust low-rank fit.

Models differ in few ways, so a (models x tasks) matrix of scores is nearly of low rank; a score
far from what the others predict is a broken run, a wrong unit, or a task that was trained on.
"""

from __future__ import annotations

import numpy as np

RANK = 4
CLIP = 4.0
"""Residuals enter the fit cut to this many robust sd, so that an outlier cannot explain itself."""
ITERATIONS = 40
NORMAL_MAD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
MIN_SPREAD = 1e-3
"""Smallest spread that a column is given: a tenth of a point."""
MIN_ROBUST_SD = 1e-2
"""Smallest sd of the residuals: a hundredth of a column's spread."""


def robust_residuals(scores: np.ndarray, rank: int = RANK) -> np.ndarray:
    """Return how many robust sd each score lies from a low-rank fit of all scores.

    Columns are divided by their sd over models first, and one robust sd holds for all. In their
    own units the fit would follow the tasks with the widest spread; and a robust sd of each
    column alone would excuse any score of a task that fits badly, and accuse weak models on a
    task that nearly all others solve.

    Args:
        scores: (n_models, n_columns) fractions; NaN = not observed.
        rank: rank of the fit, besides the column means.

    Returns:
        (n_models, n_columns); NaN where not observed. The robust sd is the scaled median absolute
        deviation of all residuals of the divided scores, at least `MIN_ROBUST_SD`; for a column
        whose own is more than twice that, half of its own: there misfit is the rule.
    """
    observed = np.isfinite(scores)
    if not observed.any():
        return np.full(scores.shape, np.nan)
    divided = np.where(observed, (scores - _medians(scores)) / _spreads(scores), np.nan)
    residual = divided
    sd = _robust_sd(residual)
    # Cut from the start: a spare factor would take an outlier whole and hide it for good.
    filled = _filled(np.zeros(scores.shape), residual, sd)
    for _ in range(ITERATIONS):
        fitted = _low_rank(filled, rank)
        residual = divided - fitted
        sd = _robust_sd(residual)
        filled = _filled(fitted, residual, sd)
    own = NORMAL_MAD * _medians(np.abs(residual))
    return residual / np.maximum(sd, own / 2)


def _filled(fitted: np.ndarray, residual: np.ndarray, sd: float) -> np.ndarray:
    """The scores with their residuals cut; the fit itself where nothing is observed."""
    cut = np.clip(residual, -CLIP * sd, CLIP * sd)
    return fitted + np.where(np.isfinite(residual), cut, 0.0)


def _low_rank(filled: np.ndarray, rank: int) -> np.ndarray:
    means = filled.mean(axis=0)
    centered = filled - means
    # The right singular vectors, from the smaller matrix: some times faster than an SVD.
    _, vectors = np.linalg.eigh(centered.T @ centered)
    leading = vectors[:, -rank:]
    found: np.ndarray = (centered @ leading) @ leading.T + means
    return found


def _robust_sd(residual: np.ndarray) -> float:
    return max(NORMAL_MAD * float(np.nanmedian(np.abs(residual))), MIN_ROBUST_SD)


def _medians(values: np.ndarray) -> np.ndarray:
    """Median of every column's observed values; 0 where there are none."""
    observed = [column[np.isfinite(column)] for column in values.T]
    return np.array([np.median(column) if column.size else 0.0 for column in observed])


def _spreads(values: np.ndarray) -> np.ndarray:
    """Standard deviation of every column's observed values, at least `MIN_SPREAD`."""
    observed = [column[np.isfinite(column)] for column in values.T]
    return np.array([max(c.std(), MIN_SPREAD) if c.size else MIN_SPREAD for c in observed])
