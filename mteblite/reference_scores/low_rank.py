"""Residuals of a robust low-rank fit of (models x tasks) scores.

Such a matrix is nearly of low rank. A score far from the fit comes from a broken run, a wrong unit,
or training on the task.
"""

from __future__ import annotations

import numpy as np

RANK = 4
CLIP = 4.0
"""The fit clips residuals to this many robust sd, so that it does not follow an outlier."""
ITERATIONS = 40
NORMAL_MAD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
MIN_SPREAD = 1e-3
"""Smallest spread of a column: a tenth of a point."""
MIN_ROBUST_SD = 1e-2
"""Smallest sd of the residuals: a hundredth of a column's spread."""


def robust_residuals(scores: np.ndarray) -> np.ndarray:
    """Return the residual of each score from a fit of rank RANK and column means, in robust sd.

    Columns are first divided by their sd over models, because otherwise the fit follows the tasks
    with the widest spread. All columns have one robust sd. With a robust sd per column, no score of
    a badly fitting task is an outlier, and weak models are outliers on a task that others solve.

    Args:
        scores: (n_models, n_columns) fractions; NaN = not observed.

    Returns:
        (n_models, n_columns); NaN where not observed. The robust sd is the scaled median absolute
        deviation of all residuals of the divided scores, at least `MIN_ROBUST_SD`. A column whose
        own robust sd is more than twice as large uses half of its own.
    """
    observed = np.isfinite(scores)
    if not observed.any():
        return np.full(scores.shape, np.nan)
    divided = np.where(observed, (scores - _medians(scores)) / _spreads(scores), np.nan)
    residual = divided
    sd = _robust_sd(residual)
    # Clip from the start, because a factor without other use would fit an outlier completely.
    filled = _filled(np.zeros(scores.shape), residual, sd)
    for _ in range(ITERATIONS):
        fitted = _low_rank(filled)
        residual = divided - fitted
        sd = _robust_sd(residual)
        filled = _filled(fitted, residual, sd)
    own = NORMAL_MAD * _medians(np.abs(residual))
    return residual / np.maximum(sd, own / 2)


def _filled(fitted: np.ndarray, residual: np.ndarray, sd: float) -> np.ndarray:
    """Return the scores with clipped residuals, and the fit where no score is observed."""
    cut = np.clip(residual, -CLIP * sd, CLIP * sd)
    return fitted + np.where(np.isfinite(residual), cut, 0.0)


def _low_rank(filled: np.ndarray) -> np.ndarray:
    means = filled.mean(axis=0)
    centered = filled - means
    # The right singular vectors, from the smaller matrix: several times as fast as an SVD.
    _, vectors = np.linalg.eigh(centered.T @ centered)
    leading = vectors[:, -RANK:]
    found: np.ndarray = (centered @ leading) @ leading.T + means
    return found


def _robust_sd(residual: np.ndarray) -> float:
    return max(NORMAL_MAD * float(np.nanmedian(np.abs(residual))), MIN_ROBUST_SD)


def _medians(values: np.ndarray) -> np.ndarray:
    """Return the median of every column's observed values; 0 without any."""
    observed = [column[np.isfinite(column)] for column in values.T]
    return np.array([np.median(column) if column.size else 0.0 for column in observed])


def _spreads(values: np.ndarray) -> np.ndarray:
    """Return the sd of every column's observed values, at least `MIN_SPREAD`."""
    observed = [column[np.isfinite(column)] for column in values.T]
    return np.array([max(c.std(), MIN_SPREAD) if c.size else MIN_SPREAD for c in observed])
