"""Linear-Gaussian item model for graded outcomes: y = slope * theta + intercept + e.

Closed form for all items at once, with a mild ridge on the slope and an empirical-Bayes floor of
the residual variance (docs/methods.md, Linear-Gaussian model).
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.response_model import ItemParameters, ResponseModel

SLOPE_RIDGE = 1.0
"""theta has unit variance, so this shrinks a slope by M / (M + 1)."""
PRIOR_MODELS = 4.0
"""Weight of the task's median residual variance in each item's own, in models."""
MIN_VARIANCE = 1e-4


def fit(theta: np.ndarray, outcomes: np.ndarray) -> ItemParameters:
    """Fit all items by ridge regression on theta.

    Args:
        theta: (n_models,) finite abilities.
        outcomes: (n_models, n_items); NaN = not observed.

    Returns:
        Parameters; NaN for items without an observed outcome.
    """
    seen = np.isfinite(outcomes)
    y = np.where(seen, outcomes, 0.0)
    mass = seen.astype(float)
    n_models = seen.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = mass.sum(axis=0)
        theta_mean = (theta @ mass) / total
        y_mean = (mass * y).sum(axis=0) / total
        centred = mass * (theta[:, None] - theta_mean)
        spread = (centred * (theta[:, None] - theta_mean)).sum(axis=0)
        slope = (centred * (y - y_mean)).sum(axis=0) / (spread + SLOPE_RIDGE)
    intercept = y_mean - slope * theta_mean
    residual = y - (theta[:, None] * slope + intercept)
    rss = (mass * residual**2).sum(axis=0)
    return ItemParameters(slope, intercept, _residual_sd(rss, n_models), n_models)


def _residual_sd(rss: np.ndarray, n_models: np.ndarray) -> np.ndarray:
    """Shrink each item's residual variance towards the median of the task."""
    freedom = np.maximum(n_models - 2, 0)
    observed = n_models > 0
    typical = float(np.median(rss[observed] / np.maximum(freedom[observed], 1)))
    variance = (rss + PRIOR_MODELS * typical) / (freedom + PRIOR_MODELS)
    return np.where(observed, np.sqrt(np.maximum(variance, MIN_VARIANCE)), np.nan)


def expected(parameters: ItemParameters, theta: np.ndarray) -> np.ndarray:
    """Return the expected outcomes (n_models, n_items), not clipped to the legal range."""
    return theta[:, None] * parameters.slope + parameters.intercept


def information(parameters: ItemParameters, theta: np.ndarray) -> np.ndarray:
    """Return slope^2 / variance, the same for every ability, as (n_models, n_items)."""
    row = (parameters.slope / parameters.residual_sd) ** 2
    return np.broadcast_to(row, (len(theta), len(row)))


def ability(parameters: ItemParameters, outcomes: np.ndarray) -> np.ndarray:
    """Return the posterior mean theta under N(0, 1) (docs/methods.md, Ability of a new model)."""
    usable = np.isfinite(outcomes) & np.isfinite(parameters.intercept)
    gain = np.where(usable, parameters.slope / parameters.residual_sd**2, 0.0)
    deviation = np.where(usable, outcomes - parameters.intercept, 0.0)
    precision = 1.0 + (gain * np.where(usable, parameters.slope, 0.0)).sum(axis=1)
    return (gain * deviation).sum(axis=1) / precision


LINEAR_GAUSSIAN = ResponseModel(
    name="linear_gaussian",
    fit=fit,
    expected=expected,
    information=information,
    ability=ability,
    constant_information=True,
)
