"""Ridge regression of the full score on the outcomes of the selected items.

"Random subset + ridge" of arXiv 2506.07673. The penalty is chosen by leaving out one family at a
time, in closed form: a ridge fit with a free intercept is a linear smoother, so the held-out
residuals of a family are (I - H_ff)^-1 r_f. Interpolates well, must not be used beyond the
reference models (`method.md` 2.1).
"""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext
from mteblite.item_parameters.fitting import is_constant

PENALTIES = np.logspace(-3, 2, 11)
"""Penalties to choose from, in units of the mean squared singular value of the outcomes."""


def estimate_ridge(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return the regression's predictions (n_models,); a missing outcome counts as the mean."""
    reference = context.known_reference("ridge")
    x = reference.filled()[:, context.positions]
    center, slope, level = fit_ridge(x, reference.full_scores, np.array(reference.families))
    deviation = np.where(np.isfinite(outcomes), outcomes - center, 0.0)
    return np.where(np.isfinite(outcomes).any(axis=1), level + deviation @ slope, np.nan)


def fit_ridge(
    x: np.ndarray, y: np.ndarray, families: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Fit y on x, the penalty by leave-one-family-out squared error.

    Args:
        x: (n, d) finite.
        y: (n,) finite.
        families: (n,) family of each row.

    Returns:
        Mean of x (d,), slopes (d,) and mean of y: prediction = mean + (x - mean of x) @ slopes.
    """
    center, level = x.mean(axis=0), float(y.mean())
    u, s, vt = np.linalg.svd(x - center, full_matrices=False)
    if is_constant(x):
        return center, np.zeros(x.shape[1]), level
    penalties = PENALTIES * float((s**2).mean())
    errors = [_left_out_error(u, s, y, families, p) for p in penalties]
    penalty = float(penalties[int(np.argmin(np.round(errors, 15)))])
    return center, vt.T @ (s / (s**2 + penalty) * (u.T @ (y - level))), level


def _left_out_error(
    u: np.ndarray, s: np.ndarray, y: np.ndarray, families: np.ndarray, penalty: float
) -> float:
    """Mean over families of the mean squared residual of models left out with their family."""
    hat = (u * (s**2 / (s**2 + penalty))) @ u.T + 1.0 / len(y)
    residual = y - hat @ y
    errors = []
    for family in np.unique(families):
        rows = np.flatnonzero(families == family)
        block = np.eye(len(rows)) - hat[np.ix_(rows, rows)]
        if len(rows) == len(y):
            return float((residual**2).mean())
        errors.append(float((np.linalg.solve(block, residual[rows]) ** 2).mean()))
    return float(np.mean(errors))
