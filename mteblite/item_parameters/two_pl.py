"""Two-parameter logistic item model given theta: P(y = 1) = sigmoid(slope * theta + intercept).

Abilities are known, so each item is a two-parameter penalised logistic regression. Its likelihood
is strictly concave, with one finite maximum even where a threshold separates the models. All items
are fitted at once by damped Newton steps (docs/methods.md, Two-parameter logistic model).
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.response_model import ItemParameters, ResponseModel

SLOPE_PENALTY = 1.0
"""Precision of the normal prior of a slope, per standard deviation of theta."""
INTERCEPT_PENALTY = 0.1
MAX_STEP = 1.0
TOLERANCE = 1e-8
MAX_ITERATIONS = 100


def fit(theta: np.ndarray, outcomes: np.ndarray) -> ItemParameters:
    """Fit all items.

    Args:
        theta: (n_models,) finite abilities.
        outcomes: (n_models, n_items) zeros and ones (fractions work as a quasi-likelihood);
            NaN = not observed.

    Returns:
        Parameters; NaN for items without an observed outcome. `residual_sd` is the root mean
        square of outcome minus expectation.
    """
    seen = np.isfinite(outcomes)
    y = np.where(seen, outcomes, 0.0)
    mass = seen.astype(float)
    n_models = seen.sum(axis=0)
    total = np.maximum(mass.sum(axis=0), 1e-300)
    edge = 0.5 / max(len(theta), 1)
    share = np.clip((mass * y).sum(axis=0) / total, edge, 1.0 - edge)
    slope = np.full(y.shape[1], 0.5)
    intercept = np.log(share / (1.0 - share))
    active = np.flatnonzero(n_models > 0)
    for _ in range(MAX_ITERATIONS):
        if active.size == 0:
            break
        step = _newton_step(theta, y[:, active], mass[:, active], slope[active], intercept[active])
        slope[active] += step[0]
        intercept[active] += step[1]
        active = active[np.abs(step).max(axis=0) > TOLERANCE]
    residual = y - sigmoid(theta[:, None] * slope + intercept)
    residual_sd = np.sqrt((mass * residual**2).sum(axis=0) / total)
    for parameter in (slope, intercept, residual_sd):
        parameter[n_models == 0] = np.nan
    return ItemParameters(slope, intercept, residual_sd, n_models)


def _newton_step(
    theta: np.ndarray,
    y: np.ndarray,
    mass: np.ndarray,
    slope: np.ndarray,
    intercept: np.ndarray,
) -> np.ndarray:
    """Return the capped Newton step (2, n_items) of the penalised log-likelihood."""
    p = sigmoid(theta[:, None] * slope + intercept)
    error = mass * (y - p)
    curvature = mass * p * (1.0 - p)
    gradient = (
        theta @ error - SLOPE_PENALTY * slope,
        error.sum(axis=0) - INTERCEPT_PENALTY * intercept,
    )
    h_slope = (theta**2) @ curvature + SLOPE_PENALTY
    h_both = theta @ curvature
    h_intercept = curvature.sum(axis=0) + INTERCEPT_PENALTY
    determinant = h_slope * h_intercept - h_both**2
    step = np.stack(
        [
            (h_intercept * gradient[0] - h_both * gradient[1]) / determinant,
            (h_slope * gradient[1] - h_both * gradient[0]) / determinant,
        ]
    )
    largest = np.abs(step).max(axis=0)
    return step * np.minimum(1.0, MAX_STEP / np.maximum(largest, 1e-300))


def expected(parameters: ItemParameters, theta: np.ndarray) -> np.ndarray:
    """Return the probabilities (n_models, n_items)."""
    return sigmoid(theta[:, None] * parameters.slope + parameters.intercept)


def information(parameters: ItemParameters, theta: np.ndarray) -> np.ndarray:
    """Return slope^2 * p * (1 - p) as (n_models, n_items)."""
    p = expected(parameters, theta)
    return parameters.slope**2 * p * (1.0 - p)


def ability(parameters: ItemParameters, outcomes: np.ndarray) -> np.ndarray:
    """Return the MAP theta under a N(0, 1) prior (docs/methods.md, Ability of a new model).

    Each model takes Newton steps until its own convergence. With a common stop, a model's last
    digits would depend on the other models.
    """
    usable = np.isfinite(outcomes) & np.isfinite(parameters.intercept)
    y = np.where(usable, outcomes, 0.0)
    slope = np.where(usable, parameters.slope, 0.0)
    intercept = np.where(np.isfinite(parameters.intercept), parameters.intercept, 0.0)
    theta, active = np.zeros(len(outcomes)), np.arange(len(outcomes))
    for _ in range(MAX_ITERATIONS):
        if active.size == 0:
            break
        a, known = slope[active], theta[active]
        p = sigmoid(a * known[:, None] + intercept)
        gradient = (a * (y[active] - p)).sum(axis=1) - known
        curvature = (a**2 * p * (1.0 - p)).sum(axis=1) + 1.0
        step = np.clip(gradient / curvature, -MAX_STEP, MAX_STEP)
        theta[active] += step
        active = active[np.abs(step) >= TOLERANCE]
    return theta


def sigmoid(eta: np.ndarray) -> np.ndarray:
    """Return the logistic function, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * eta))


TWO_PL = ResponseModel(
    name="two_pl",
    fit=fit,
    expected=expected,
    information=information,
    ability=ability,
    constant_information=False,
)
