"""Logistic item model for graded outcomes: E(y) = sigmoid(slope * theta + intercept).

Quasi-likelihood of Papke and Wooldridge 1996: the curve is fitted as if outcomes were shares of
right answers, and a dispersion phi per item says how much less (or more) they vary than zeros and
ones (`method.md` 3.2, 3.3). `residual_sd` is the spread at theta = 0.
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters import two_pl
from mteblite.item_parameters.dispersion import dispersion, unit_variance
from mteblite.item_parameters.response_model import ItemParameters, ResponseModel


def fit(theta: np.ndarray, outcomes: np.ndarray, weights: np.ndarray) -> ItemParameters:
    """Fit the curves as `two_pl.fit` does, then the dispersion."""
    curve = two_pl.fit(theta, outcomes, weights)
    phi, count = dispersion(outcomes, two_pl.expected(curve, theta), weights)
    spread = np.sqrt(phi * unit_variance(two_pl.sigmoid(curve.intercept)))
    return ItemParameters(curve.slope, curve.intercept, spread, count)


def phi_of(parameters: ItemParameters) -> np.ndarray:
    """Return the dispersion (n_items,)."""
    return parameters.residual_sd**2 / unit_variance(two_pl.sigmoid(parameters.intercept))


def information(parameters: ItemParameters, theta: np.ndarray) -> np.ndarray:
    """Return slope^2 * p * (1 - p) / phi as (n_models, n_items)."""
    return two_pl.information(parameters, theta) / phi_of(parameters)


def ability(parameters: ItemParameters, outcomes: np.ndarray) -> np.ndarray:
    """Return the MAP theta of the quasi-likelihood under a N(0, 1) prior (n_models,)."""
    return two_pl.logistic_ability(parameters, outcomes, phi_of(parameters))


FRACTIONAL_LOGIT = ResponseModel(
    name="fractional_logit",
    fit=fit,
    expected=two_pl.expected,
    information=information,
    ability=ability,
    constant_information=False,
)
