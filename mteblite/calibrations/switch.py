"""Calibrated gp inside the range of the reference models, GREG beyond it.

Estimators fitted on full scores shrink models that are better than every reference model. The
overshoot z is the distance of GREG from the range of the reference models' full scores, in standard
errors. The weight of gp is 1 / (1 + exp(4 (z - 1/4))), so it falls within half a standard error
(docs/methods.md, Range switch).
"""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext
from mteblite.calibrations.gp import estimate_gp
from mteblite.calibrations.greg import estimate_greg
from mteblite.calibrations.linear import linear_line

OVERSHOOT = 0.25
STEEPNESS = 4.0
MIN_ERROR = 1e-4


def estimate_switch(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return estimates of the full score (n_models,)."""
    reference = context.known_reference("switch")
    trained = estimate_gp(reference.filled()[:, context.positions], context)
    slope, intercept = linear_line(trained, reference.full_scores)
    inside = slope * estimate_gp(outcomes, context) + intercept
    # GREG estimates the pool mean; the shift is the mean difference to the full score.
    pool_means = reference.filled() @ context.pool_weights
    shift = float((reference.full_scores - pool_means).mean())
    beyond = estimate_greg(outcomes, context) + shift
    weight = inside_weight(
        beyond, standard_errors(outcomes), reference.full_scores.min(), reference.full_scores.max()
    )
    return weight * inside + (1.0 - weight) * beyond


def inside_weight(estimates: np.ndarray, errors: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the weight of the model-based estimate (n,): near 3/4 inside, falling to 0 beyond.

    Design-based estimates (n,) have standard errors (n,), and the reference models' full scores are
    in [low, high].
    """
    z = np.maximum(0.0, np.maximum(estimates - high, low - estimates) / errors)
    return np.asarray(1.0 / (1.0 + np.exp(np.minimum(STEEPNESS * (z - OVERSHOOT), 500.0))))


def standard_errors(outcomes: np.ndarray) -> np.ndarray:
    """Return the standard error of a simple mean of each model's outcomes (n_models,)."""
    seen = np.isfinite(outcomes)
    count = np.maximum(seen.sum(axis=1), 1)
    values = np.where(seen, outcomes, 0.0)
    variance = (values**2).sum(axis=1) / count - (values.sum(axis=1) / count) ** 2
    return np.sqrt(np.maximum(variance, 0.0) / count) + MIN_ERROR
