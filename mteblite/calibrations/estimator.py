"""The interface of estimators of per-item tasks, and their input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mteblite.item_parameters.response_model import ItemParameters
from mteblite.task_types.registry import find_type


def legal_range(task_type: str) -> tuple[float, float]:
    """Return the bounds of scores and outcomes of a task type."""
    return find_type(task_type).lowest_score, 1.0


@dataclass(frozen=True)
class Reference:
    """The training models, as estimators use them; models first.

    Attributes:
        outcomes: (n_reference, n_items) on the whole pool; NaN = not observed.
        full_scores: (n_reference,) finite.
        families: (n_reference,) family of each.
    """

    outcomes: np.ndarray
    full_scores: np.ndarray
    families: tuple[str, ...]

    def filled(self) -> np.ndarray:
        """Return the outcomes; a missing outcome becomes the item's mean."""
        seen = np.isfinite(self.outcomes)
        total = np.where(seen, self.outcomes, 0.0).sum(axis=0)
        count = seen.sum(axis=0)
        overall = total.sum() / max(int(count.sum()), 1)
        mean = np.where(count > 0, total / np.maximum(count, 1), overall)
        return np.where(seen, self.outcomes, mean)


@dataclass(frozen=True)
class EstimationContext:
    """Input of an estimator of a per-item task, besides the outcomes of the estimated model.

    Attributes:
        positions: (k,) places of the selected items in the pool, in rank order.
        weights: (k,) selection weights, with sum 1.
        pool_weights: (n_items,) pool weights, with sum 1.
        parameters: item parameters of the whole pool, fitted on the training models.
        response_model: name of their response model.
        bounds: legal range of outcomes.
        reference: the training models, for estimators in NEEDS_REFERENCE.
        method: selector of the items; "" where no estimator uses it.
    """

    positions: np.ndarray
    weights: np.ndarray
    pool_weights: np.ndarray
    parameters: ItemParameters
    response_model: str
    bounds: tuple[float, float]
    reference: Reference | None = None
    method: str = ""

    def known_reference(self, estimator: str) -> Reference:
        """Return the reference models.

        Raises:
            ValueError: there are none.
        """
        if self.reference is None:
            raise ValueError(
                f"estimator {estimator!r} needs the outcomes of the reference models, but got "
                "none: pass `reference`, or use mean, pirt or gp"
            )
        return self.reference


Estimator = Callable[[np.ndarray, EstimationContext], np.ndarray]
"""(outcomes on the selection (n_models, k), context) -> raw estimates (n_models,). NaN outcomes
are left out. A model without any outcome gets NaN."""
