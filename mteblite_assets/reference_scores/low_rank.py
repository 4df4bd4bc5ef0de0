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
MIN_ROBUST_SD = 1e-3
"""Smallest sd that a column is given: a tenth of a point."""


def robust_residuals(scores: np.ndarray, rank: int = RANK) -> np.ndarray:
    """Return how many robust sd each score lies from a low-rank fit of all scores.

    Args:
        scores: (n_models, n_columns) fractions; NaN = not observed.
        rank: rank of the fit, besides the column means.

    Returns:
        (n_models, n_columns); NaN where not observed. A column's robust sd is the scaled median
        absolute deviation of its residuals, at least `MIN_ROBUST_SD`.
    """
    observed = np.isfinite(scores)
    if not observed.any():
        return np.full(scores.shape, np.nan)
    center = _medians(scores)
    residual = np.where(observed, scores - center, np.nan)
    spread = _robust_sd(residual)
    fitted = np.broadcast_to(center, scores.shape)
    # Cut from the start: a spare factor would take an outlier whole and hide it for good.
    filled = _filled(fitted, residual, spread)
    for _ in range(ITERATIONS):
        fitted = _low_rank(filled, rank)
        residual = np.where(observed, scores - fitted, np.nan)
        spread = _robust_sd(residual)
        filled = _filled(fitted, residual, spread)
    return np.where(observed, (scores - fitted) / spread, np.nan)


def _filled(fitted: np.ndarray, residual: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """The scores with their residuals cut; the fit itself where nothing is observed."""
    cut = np.clip(residual, -CLIP * spread, CLIP * spread)
    return fitted + np.where(np.isfinite(residual), cut, 0.0)


def _low_rank(filled: np.ndarray, rank: int) -> np.ndarray:
    means = filled.mean(axis=0)
    centered = filled - means
    # The right singular vectors, from the smaller matrix: some times faster than an SVD.
    _, vectors = np.linalg.eigh(centered.T @ centered)
    leading = vectors[:, -rank:]
    found: np.ndarray = (centered @ leading) @ leading.T + means
    return found


def _robust_sd(residual: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.maximum(NORMAL_MAD * _medians(np.abs(residual)), MIN_ROBUST_SD)
    return found


def _medians(values: np.ndarray) -> np.ndarray:
    """Median of every column's observed values; 0 where there are none."""
    observed = [column[np.isfinite(column)] for column in values.T]
    return np.array([np.median(column) if column.size else 0.0 for column in observed])
