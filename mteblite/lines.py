"""Least-squares lines from estimates to full scores, many at once."""

from __future__ import annotations

import numpy as np

MIN_VARIANCE = 1e-10
"""With less variance of the estimates, the slope is not identified and only an offset is fitted."""
SLOPE_RANGE = (0.25, 4.0)
MIN_MODELS_FOR_SLOPE = 3
NOTHING_TO_FIT = (
    "none of {n} reference models has both an estimate and a full score: nothing to calibrate on"
)


def fit_lines(estimates: np.ndarray, full_scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit a line for each row of estimates (n_draws, n_models) and the same full scores.

    Returns:
        Slopes and intercepts (n_draws,), slopes within SLOPE_RANGE, and 1 without spread or with
        few models. The intercept is NaN where a draw has no defined estimate.

    Raises:
        ValueError: no draw has a model with both an estimate and a full score.
    """
    scores = np.asarray(full_scores, dtype=float)
    known = np.isfinite(estimates) & np.isfinite(scores)
    count = known.sum(axis=1)
    if not (count > 0).any():
        raise ValueError(NOTHING_TO_FIT.format(n=len(scores)))
    safe = np.maximum(count, 1)
    x = np.where(known, estimates, 0.0)
    y = np.where(known, scores, 0.0)
    x_mean, y_mean = x.sum(axis=1) / safe, y.sum(axis=1) / safe
    x_centred = np.where(known, estimates - x_mean[:, None], 0.0)
    variance = (x_centred**2).sum(axis=1) / safe
    covariance = (x_centred * y).sum(axis=1) / safe
    fitted = np.clip(covariance / np.maximum(variance, MIN_VARIANCE), *SLOPE_RANGE)
    has_slope = (variance >= MIN_VARIANCE) & (count >= MIN_MODELS_FOR_SLOPE)
    slope = np.where(has_slope, fitted, 1.0)
    return slope, np.where(count > 0, y_mean - slope * x_mean, np.nan)
