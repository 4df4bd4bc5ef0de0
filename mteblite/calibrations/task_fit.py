"""The fit of a task: from evidence to estimates, calibration lines and a fitted task.

A release fits on all reference models, a validation fold on those that it does not hold out. Both
use `TaskFits`, which caches selections for all estimators, and results for all folds with the same
training models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from mteblite.calibrations.cross_fitting import cross_fitted
from mteblite.calibrations.estimator import EstimationContext, Reference, legal_range
from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.levels import CROSS_FITTED, JOINT, starting_line
from mteblite.calibrations.linear import Calibration, find_line, fit_calibration
from mteblite.calibrations.registry import (
    NEEDS_REFERENCE,
    SET_STATISTIC,
    SURROGATE,
    Statistic,
    find_estimator,
    find_set_estimator,
    usable_estimator,
)
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit, fit_items, restrict, usable_models
from mteblite.selections.selector import measure_of, pool_weights, set_statistics
from mteblite.selections.token_budget import Positions, choose_positions, selection_rows
from mteblite.task_types.scoring import check_selection, set_statistic


@dataclass
class Training:
    """Item parameters and selections of a task on some training models, computed on first use.

    Attributes:
        reference: the training models, each with a full score and outcomes.
        make_fit: fits the items on the training models.
        make_selection: (selector, models, fit) -> method used, positions in rank order, weights;
            see `choose_positions`.
    """

    reference: TaskEvidence
    make_fit: Callable[[TaskEvidence], ItemFit]
    make_selection: Callable[[str, TaskEvidence, ItemFit], Positions]
    selections: dict[str, Positions] = field(default_factory=dict)

    @cached_property
    def fit(self) -> ItemFit:
        """The items fitted on the training models."""
        return self.make_fit(self.reference)

    def select(self, selector: str) -> Positions:
        """Return method used, positions and weights of a selection."""
        if selector not in self.selections:
            self.selections[selector] = self.make_selection(selector, self.reference, self.fit)
        return self.selections[selector]

    def usable_estimator(self, estimator: str) -> str:
        """Return the estimator, or its replacement where abilities are not usable."""
        kind = self.reference.kind
        return usable_estimator(estimator, kind, usable=kind != "per_item" or self.fit.usable)


@dataclass
class TaskFits:
    """Fits of one task on subsets of its models, and estimates of all its models by each fit.

    Attributes:
        evidence: all models, each with a full score and outcomes.
        k: items to select; folds may change it, and the cache keeps results of every k.
        rng_keys: stable keys of the random draws, e.g. (suite, seed).
        statistic: the official set statistic.
        response_model: see `fit_items`.
        costs: (n_items,) tokens of each item under `allocation: tokens`; see `choose`.
    """

    evidence: TaskEvidence
    k: int
    rng_keys: tuple[str | int, ...]
    statistic: Statistic = set_statistic
    response_model: str = "auto"
    costs: np.ndarray | None = None
    _training: dict[tuple[bytes, int], Training] = field(default_factory=dict, repr=False)
    _estimates: dict[tuple[bytes, str], np.ndarray] = field(default_factory=dict, repr=False)
    _statistics: dict[bytes, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def everything(self) -> np.ndarray:
        """The mask (n_models,) of all models, the training models of a release."""
        return np.ones(len(self.evidence.models), dtype=bool)

    def use(self, fit: ItemFit, selector: str, selection: pd.DataFrame) -> None:
        """Use a stored fit and selection (item_id, method, rank, weight) of all models."""
        rows = selection.sort_values("rank")
        place = pd.Series(np.arange(len(fit.item_ids)), index=list(fit.item_ids))
        training = self.training(self.everything)
        training.make_fit = lambda _: fit
        training.selections[selector] = (
            str(rows["method"].iloc[0]),
            place[rows["item_id"]].to_numpy(),
            rows["weight"].to_numpy(dtype=float),
        )

    def training(self, train: np.ndarray) -> Training:
        """Return fit and selections on the models of a mask (n_models,)."""
        key = (train.tobytes(), self.k)
        if key not in self._training:
            k, keys, costs = self.k, self.rng_keys, self.costs

            def measure(positions: np.ndarray, weights: np.ndarray) -> np.ndarray:
                return self._measured(positions, weights)[train]

            self._training[key] = Training(
                self.evidence.only_models(train),
                lambda reference: fit_items(reference, self.response_model),
                lambda name, reference, fit: choose_positions(
                    name, reference, fit, k, keys, costs, measure
                ),
            )
        return self._training[key]

    def forget_training(self) -> None:
        """Delete cached fits and selections, which are large; cached estimates stay."""
        self._training.clear()

    def raw(self, train: np.ndarray, selector: str, estimator: str) -> np.ndarray:
        """Return uncalibrated estimates of all models (n_models,), training models included."""
        key = (train.tobytes(), f"{self.k}/{selector}/{estimator}")
        if key not in self._estimates:
            self._estimates[key] = self._raw(self.training(train), selector, estimator)
        return self._estimates[key]

    def cross_fitted(self, train: np.ndarray, selector: str, estimator: str) -> np.ndarray:
        """Return estimates of training models by fits without them (n_models,), NaN elsewhere.

        Every inner fold standardises, fits and selects again without a group of families, so the
        selected items differ between folds.
        """
        return cross_fitted(
            lambda inner: self.raw(inner, selector, estimator), train, self.evidence.families
        )

    def calibrated(self, train: np.ndarray, variant: Variant) -> np.ndarray:
        """Return the calibrated estimates of all models (n_models,), not clipped.

        An undefined estimate gives NaN. If the estimates of all training models are undefined,
        every model gets NaN.
        """
        kind = self.evidence.kind
        raw = self.raw(train, variant.selection(kind), variant.estimator_for(kind))
        method, estimates = self._calibration_data(train, variant)
        if not np.isfinite(estimates).any():
            return np.full(len(raw), np.nan)
        slope, intercept = find_line(method)(estimates, self.evidence.full_scores[train])
        return np.asarray(slope * raw + intercept)

    def start(self, train: np.ndarray, variant: Variant) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates before the joint calibration of a variant, not clipped.

        Returns:
            Estimates of all models (n_models,) after the `starting_line`; and cross-fitted
            estimates of the training models after the same line (n_models,), NaN elsewhere.
        """
        kind = self.evidence.kind
        parts = (variant.selection(kind), variant.estimator_for(kind))
        cross_fitted = self.cross_fitted(train, *parts)
        if not np.isfinite(cross_fitted[train]).any():
            return np.full(len(train), np.nan), cross_fitted
        line = find_line(starting_line(kind))
        slope, intercept = line(cross_fitted[train], self.evidence.full_scores[train])
        return slope * self.raw(train, *parts) + intercept, slope * cross_fitted + intercept

    def fitted(self, variant: Variant) -> FittedTask:
        """Return the task fitted on all models, for scoring new ones.

        For a variant with a joint calibration, the line of the task is its `starting_line`.

        Raises:
            ValueError: the estimate, or the set metric on the selection, is undefined for every
                model.
        """
        evidence, everything = self.evidence, self.everything
        training = self.training(everything)
        method, chosen, weights = training.select(variant.selection(evidence.kind))
        used = training.usable_estimator(variant.estimator_for(evidence.kind))
        calibration, estimates = self._calibration_data(everything, variant)
        try:
            check_selection(evidence.task_type, evidence.items.iloc[chosen])
            line: Calibration = fit_calibration(calibration, estimates, evidence.full_scores)
        except ValueError as error:
            raise ValueError(f"{evidence.task}: {error}") from error
        return FittedTask(
            task=evidence.task,
            task_type=evidence.task_type,
            kind=evidence.kind,
            items=evidence.items,
            selection=selection_rows(evidence, method, chosen, weights),
            item_parameters=training.fit.item_parameters,
            estimator=used,
            calibration_method=calibration,
            calibration=line,
            theta_mean=training.fit.ability.mean,
            theta_sd=training.fit.ability.sd,
            reference_low=float(evidence.full_scores.min()),
            reference_high=float(evidence.full_scores.max()),
            statistic=self.statistic,
            reference=reference_of(evidence) if used in NEEDS_REFERENCE else None,
        )

    def set_statistics(
        self, positions: np.ndarray, weights: np.ndarray, estimator: str = SET_STATISTIC
    ) -> np.ndarray:
        """Return a set statistic of every model on a selection (n_models,); cached.

        Raises:
            ValueError: the task has no observations.
        """
        key = positions.tobytes() + weights.tobytes() + estimator.encode()
        if key not in self._statistics:
            official = estimator == SET_STATISTIC
            statistic = self.statistic if official else find_set_estimator(estimator)
            self._statistics[key] = set_statistics(self.evidence, positions, weights, statistic)
        return self._statistics[key]

    def _measured(self, positions: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return what `measure_of` returns, of all models; folds share the statistics.

        A replaced official statistic replaces the surrogate, too.
        """
        if self.evidence.kind == "per_item":
            return measure_of(self.evidence)(positions, weights)
        replaced = self.statistic is not set_statistic
        return self.set_statistics(positions, weights, SET_STATISTIC if replaced else SURROGATE)

    def _calibration_data(self, train: np.ndarray, variant: Variant) -> tuple[str, np.ndarray]:
        """Return the calibration of this kind of task and the estimates (n_train,) for its fit."""
        kind = self.evidence.kind
        parts = (variant.selection(kind), variant.estimator_for(kind))
        method = variant.calibration
        if method in CROSS_FITTED or method in JOINT:
            method = CROSS_FITTED.get(method, starting_line(kind))
            return method, self.cross_fitted(train, *parts)[train]
        if kind == "per_item" and method == "linear":
            method = variant.calibration_for(self.training(train).usable_estimator(parts[1]))
        return method, self.raw(train, *parts)[train]

    def _raw(self, training: Training, selector: str, estimator: str) -> np.ndarray:
        evidence = self.evidence
        method, chosen, weights = training.select(selector)
        used = training.usable_estimator(estimator)
        if evidence.kind != "per_item":
            return self.set_statistics(chosen, weights, used)
        context = EstimationContext(
            positions=chosen,
            weights=weights,
            pool_weights=pool_weights(evidence),
            parameters=training.fit.parameters,
            response_model=training.fit.response_model,
            bounds=legal_range(evidence.task_type),
            reference=reference_of(training.reference),
            method=method,
        )
        # The memory order of a new model's outcomes, because the last digits depend on the order.
        outcomes = np.ascontiguousarray(evidence.outcomes[:, chosen])
        return find_estimator(used)(outcomes, context)


def fits_of(evidence: TaskEvidence, k: int, rng_keys: tuple[str | int, ...]) -> TaskFits:
    """Return the fits of a task on the models that have a full score and outcomes."""
    return TaskFits(restrict(evidence, usable_models(evidence)), k, rng_keys)


def reference_of(evidence: TaskEvidence) -> Reference:
    """Return the models that have a full score and outcomes, as estimators use them.

    Raises:
        ValueError: there is no such model.
    """
    known = restrict(evidence, usable_models(evidence))
    return Reference(known.outcomes, known.full_scores, known.families)
