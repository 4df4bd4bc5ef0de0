"""Linear item model whose variance follows its mean: y = mu + e, Var(e) = phi * mu * (1 - mu).

mu = slope * theta + intercept as in the linear-Gaussian model, but an item tells most about models
for which it is nearly always right or wrong and little in between, so that greedy selection is no
longer "the k largest" (`method.md` 3.2, 3.4; arXiv 2601.13885). `residual_sd` is the spread at
theta = 0.
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters import linear_gaussian
from mteblite.item_parameters.dispersion import dispersion, unit_variance
from mteblite.item_parameters.response_model import (
    ItemParameters,
    ResponseModel,
    solve_each,
)

MAX_ITERATIONS = 50
TOLERANCE = 1e-8


def fit(theta: np.ndarray, outcomes: np.ndarray, weights: np.ndarray) -> ItemParameters:
    """Fit the lines by ridge, then the dispersion; arguments as in `linear_gaussian.fit`."""
    line = linear_gaussian.fit(theta, outcomes, weights)
    phi, count = dispersion(outcomes, linear_gaussian.expected(line, theta), weights)
    spread = np.sqrt(phi * unit_variance(line.intercept))
    return ItemParameters(line.slope, line.intercept, spread, count)


def phi_of(parameters: ItemParameters) -> np.ndarray:
    """Return the dispersion (n_items,)."""
    return parameters.residual_sd**2 / unit_variance(parameters.intercept)


def information(parameters: ItemParameters, theta: np.ndarray) -> np.ndarray:
    """Return slope^2 / variance at the expected outcome (n_models, n_items)."""
    mean = linear_gaussian.expected(parameters, theta)
    return parameters.slope**2 / (phi_of(parameters) * unit_variance(mean))


def ability(parameters: ItemParameters, outcomes: np.ndarray) -> np.ndarray:
    """Return theta by iterated weighted least squares under a N(0, 1) prior (n_models,).

    The root of the quasi-score: the variance is that of the last step's mean.
    """
    usable = np.isfinite(outcomes) & np.isfinite(parameters.intercept)
    phi = np.where(np.isfinite(phi_of(parameters)), phi_of(parameters), 1.0)
    slope = np.where(usable, parameters.slope, 0.0)
    intercept = np.where(np.isfinite(parameters.intercept), parameters.intercept, 0.0)
    deviation = np.where(usable, outcomes - intercept, 0.0)

    def half_step(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        gain = slope[rows] / (phi * unit_variance(slope[rows] * theta[:, None] + intercept))
        new = (gain * deviation[rows]).sum(axis=1) / (1.0 + (gain * slope[rows]).sum(axis=1))
        # Half steps: where the mean is clipped, full ones may jump between two values.
        return np.asarray(0.5 * (new - theta))

    return solve_each(half_step, len(outcomes), MAX_ITERATIONS, TOLERANCE)


HETEROSKEDASTIC = ResponseModel(
    name="heteroskedastic",
    fit=fit,
    expected=linear_gaussian.expected,
    information=information,
    ability=ability,
    constant_information=False,
)
