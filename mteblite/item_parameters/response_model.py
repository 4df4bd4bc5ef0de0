"""What an item response model must offer. A new one is one file and one entry in `fitting.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ItemParameters:
    """Parameters of items, as arrays (n_items,).

    Attributes:
        slope: change of the linear predictor per unit of theta (discrimination).
        intercept: linear predictor at theta = 0.
        residual_sd: spread of outcomes around the curve, on the outcome scale.
        n_models: models observed on the item; the other arrays are NaN where this is 0.
    """

    slope: np.ndarray
    intercept: np.ndarray
    residual_sd: np.ndarray
    n_models: np.ndarray

    def take(self, index: np.ndarray) -> ItemParameters:
        """Return the parameters of a few items."""
        return ItemParameters(
            self.slope[index],
            self.intercept[index],
            self.residual_sd[index],
            self.n_models[index],
        )


@dataclass(frozen=True)
class ResponseModel:
    """An item response model as functions of arrays; models first everywhere.

    Attributes:
        name: `linear_gaussian` or `two_pl`.
        fit: (theta (n_models,), outcomes (n_models, n_items)) -> parameters.
        expected: (parameters, theta (n_models,)) -> expected outcomes (n_models, n_items).
        information: (parameters, theta) -> Fisher information (n_models, n_items).
        ability: (parameters of k items, outcomes (n_models, k)) -> MAP theta (n_models,) under
            a N(0, 1) prior; NaN outcomes are left out.
        constant_information: True where the information does not depend on theta.
    """

    name: str
    fit: Callable[[np.ndarray, np.ndarray], ItemParameters]
    expected: Callable[[ItemParameters, np.ndarray], np.ndarray]
    information: Callable[[ItemParameters, np.ndarray], np.ndarray]
    ability: Callable[[ItemParameters, np.ndarray], np.ndarray]
    constant_information: bool


def solve_each(
    step: Callable[[np.ndarray, np.ndarray], np.ndarray],
    n_models: int,
    max_iterations: int,
    tolerance: float,
) -> np.ndarray:
    """Return theta (n_models,) by steps from 0, each model until its own convergence.

    A common end would let a model's last digits depend on who else is estimated with it.

    Args:
        step: (theta of some models, their rows) -> steps.
        n_models: models.
        max_iterations: most steps of a model.
        tolerance: a model whose step is smaller is done.
    """
    theta, active = np.zeros(n_models), np.arange(n_models)
    for _ in range(max_iterations):
        if active.size == 0:
            break
        move = step(theta[active], active)
        theta[active] += move
        active = active[np.abs(move) >= tolerance]
    return theta
