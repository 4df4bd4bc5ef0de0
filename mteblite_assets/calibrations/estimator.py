"""What an estimator is, and what it may look at: the selection, and item parameters of the pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mteblite_assets.item_parameters.response_model import ItemParameters

CORRELATION_TYPES = frozenset({"STS", "Summarization"})
"""Types whose scores are correlations and so may be negative."""


def legal_range(task_type: str) -> tuple[float, float]:
    """Return the bounds of scores and outcomes of a task type."""
    return (-1.0, 1.0) if task_type in CORRELATION_TYPES else (0.0, 1.0)


@dataclass(frozen=True)
class EstimationContext:
    """All that an estimator of a per-item task may use besides a model's own outcomes.

    Attributes:
        positions: (k,) places of the selected items in the pool, in rank order.
        weights: (k,) selection weights, summing to 1.
        pool_weights: (n_items,) pool weights, summing to 1.
        parameters: item parameters of the whole pool, fitted on the training models.
        response_model: their name.
        bounds: legal range of outcomes.
    """

    positions: np.ndarray
    weights: np.ndarray
    pool_weights: np.ndarray
    parameters: ItemParameters
    response_model: str
    bounds: tuple[float, float]


Estimator = Callable[[np.ndarray, EstimationContext], np.ndarray]
"""(outcomes on the selection (n_models, k), context) -> raw estimates (n_models,); NaN outcomes
are left out; a model without any outcome gets NaN."""
