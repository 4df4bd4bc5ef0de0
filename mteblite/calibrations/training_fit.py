"""One training set of one task: its fit and its selections, and raw estimates of all models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mteblite.calibrations.estimator import EstimationContext, Reference, legal_range
from mteblite.calibrations.registry import find_estimator, usable_estimator
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit, fit_items, restrict, usable_models
from mteblite.selections.selector import pool_weights
from mteblite.selections.token_budget import choose_positions

SetStatistics = Callable[[np.ndarray, np.ndarray, str], np.ndarray]
"""(positions, weights, set estimator) -> the statistic of every model (n_models,)."""


@dataclass
class TrainingFit:
    """What the training models teach about a task; made when first asked for.

    Attributes:
        evidence: all models, each with a full score and outcomes.
        train: (n_models,) mask of the models to standardise, fit and select on.
        k: items to select.
        rng_keys: stable keys of the random draws.
        set_statistics: statistic of set metrics on a selection.
        response_model: see `fit_items`.
        costs: tokens of each item, where items are chosen for tokens; see `choose`.
    """

    evidence: TaskEvidence
    train: np.ndarray
    k: int
    rng_keys: tuple[str | int, ...]
    set_statistics: SetStatistics
    response_model: str = "auto"
    costs: np.ndarray | None = None
    _selected: dict[str, tuple[str, np.ndarray, np.ndarray]] = field(default_factory=dict)

    def raw(self, selection: str, estimator: str) -> np.ndarray:
        """Return uncalibrated estimates of all models (n_models,), training models or not."""
        evidence = self.evidence
        method, chosen, weights = self.select(selection)
        estimator = self.usable_estimator(estimator)
        if evidence.kind != "per_item":
            return self.set_statistics(chosen, weights, estimator)
        context = EstimationContext(
            positions=chosen,
            weights=weights,
            pool_weights=pool_weights(evidence),
            parameters=self.fit.parameters,
            response_model=self.fit.response_model,
            bounds=legal_range(evidence.task_type),
            reference=reference_of(self.reference),
            method=method,
        )
        return find_estimator(estimator)(evidence.outcomes[:, chosen], context)

    def usable_estimator(self, estimator: str) -> str:
        """Return the estimator that steps in where abilities have no spread."""
        kind = self.evidence.kind
        usable = kind != "per_item" or self.fit.usable
        return usable_estimator(estimator, kind, usable=usable)

    @cached_property
    def reference(self) -> TaskEvidence:
        """The training models."""
        return self.evidence.only_models(self.train)

    @cached_property
    def fit(self) -> ItemFit:
        """The items fitted on them."""
        return fit_items(self.reference, self.response_model)

    def select(self, selection: str) -> tuple[str, np.ndarray, np.ndarray]:
        """Return method used, positions and weights of a selection."""
        if selection not in self._selected:
            self._selected[selection] = choose_positions(
                selection, self.reference, self.fit, self.k, self.rng_keys, self.costs
            )
        return self._selected[selection]


def reference_of(evidence: TaskEvidence) -> Reference:
    """Return what estimators may know of the models that have a full score and outcomes.

    Raises:
        ValueError: there is no such model.
    """
    known = restrict(evidence, usable_models(evidence))
    return Reference(known.outcomes, known.full_scores, known.families)
