"""The interface of response models. A new one is one file and one entry in `fitting.py`."""

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
        n_models: models with an observed outcome; the other arrays are NaN where this is 0.
    """

    slope: np.ndarray
    intercept: np.ndarray
    residual_sd: np.ndarray
    n_models: np.ndarray

    def take(self, index: np.ndarray) -> ItemParameters:
        """Return the parameters of some items."""
        arrays = (self.slope, self.intercept, self.residual_sd, self.n_models)
        return ItemParameters(*(array[index] for array in arrays))


@dataclass(frozen=True)
class ResponseModel:
    """An item response model as functions of arrays, models first.

    Attributes:
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
