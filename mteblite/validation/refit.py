"""Refit one task on some of its models and predict all of them, for many variants at once.

Selections are shared by the estimators that use them, and results by folds that leave out the
same models, so a suite of 41 tasks by 46 models costs minutes, not days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mteblite.calibrations.cross_fitted_task import statistics_of
from mteblite.calibrations.cross_fitting import cross_fitted
from mteblite.calibrations.estimator import legal_range
from mteblite.calibrations.levels import CROSS_FITTED, JOINT, starting_line
from mteblite.calibrations.linear import find_calibration, fit_lines, fit_offset
from mteblite.calibrations.mean import weighted_mean
from mteblite.calibrations.registry import (
    SET_STATISTIC,
    Statistic,
    find_set_estimator,
)
from mteblite.calibrations.training_fit import TrainingFit
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.seeds import generator
from mteblite.selections.item_costs import item_costs
from mteblite.selections.random_items import draw
from mteblite.selections.selector import pool_weights
from mteblite.validation.same_token import rounded_budget, same_token_draws
from mteblite.validation.variants import COMPARED, CROSS_TASK, Baseline


@dataclass
class TaskRefits:
    """Predictions of one task after refitting it on subsets of its models.

    Attributes:
        evidence: all models, each with a full score and outcomes.
        k: items to select; may be changed between folds, results of both are remembered.
        seed: enters every random draw.
        statistic: the official set statistic.
        response_model: see `fit_items`.
        random_draws: draws of the random baselines.
        token_costs: (n_items,) tokens of each item; None = texts by task type.
        compared: variant whose selection sets the budget of `same_token`.
        baseline_k: items of `random`; None = the k given first.
        by_token: select as many items as the tokens of k average ones pay, see `choose`.
    """

    evidence: TaskEvidence
    k: int
    seed: int
    statistic: Statistic
    response_model: str = "auto"
    random_draws: int = 50
    token_costs: np.ndarray | None = None
    compared: Variant = COMPARED
    baseline_k: int | None = None
    by_token: bool = False
    _done: dict[tuple[bytes, str], np.ndarray] = field(default_factory=dict, repr=False)
    _estimates: dict[tuple[bytes, str], np.ndarray] = field(default_factory=dict, repr=False)
    _fits: dict[tuple[bytes, int], TrainingFit] = field(default_factory=dict, repr=False)
    _statistics: dict[bytes, np.ndarray] = field(default_factory=dict, repr=False)
    _paid: dict[float, np.ndarray] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.baseline_k = self.k if self.baseline_k is None else self.baseline_k

    def predict(self, train: np.ndarray, choice: Variant | Baseline) -> np.ndarray:
        """Predict the full scores of all models from what the training models teach.

        Args:
            train: (n_models,) mask of the models to restandardise, refit, reselect and
                recalibrate on.
            choice: variant or baseline.

        Returns:
            (n_draws, n_models) clipped predictions, one draw but for the random baseline; NaN
            where an estimate is undefined.
        """
        if isinstance(choice, Baseline):
            key = (train.tobytes(), f"{choice}")
            if key not in self._done:
                calibration = "offset" if choice.joint else choice.calibration
                self._done[key] = self._calibrate(self._baseline(train, choice), train, calibration)
            return self._done[key]
        return self.predict_many(train, [choice])[str(choice)]

    def predict_many(
        self, train: np.ndarray, choices: Sequence[Variant | Baseline]
    ) -> dict[str, np.ndarray]:
        """Return `predict` of several variants by name, fitting and selecting once.

        Variants with a joint calibration get the estimates that it starts from, see `start`.
        """
        found: dict[str, np.ndarray] = {}
        for choice in choices:
            if isinstance(choice, Baseline):
                found[str(choice)] = self.predict(train, choice)
                continue
            selection, estimator, calibration = self._parts(train, choice)
            key = (train.tobytes(), f"{self.k}/{selection}/{estimator}/{calibration}")
            if key not in self._done:
                raw = self.raw(train, selection, estimator)
                if calibration in CROSS_FITTED or calibration in JOINT:
                    taught = self.cross_fitted(train, selection, estimator)
                    method = CROSS_FITTED.get(calibration, starting_line(self.evidence.kind))
                    self._done[key] = self._calibrate(raw[None], train, method, taught[None])
                else:
                    self._done[key] = self._calibrate(raw[None], train, calibration)
            found[str(choice)] = self._done[key]
        self.forget_fits()
        return found

    def forget_fits(self) -> None:
        """Drop fits and selections, which are large; estimates stay remembered."""
        self._fits.clear()

    def start(self, train: np.ndarray, choice: Variant | Baseline) -> tuple[np.ndarray, np.ndarray]:
        """Return what a joint calibration starts from, not clipped.

        Args:
            train: (n_models,) mask.
            choice: variant, its own calibration plays no part; or the baseline `cross_task`,
                which starts from whole pools.

        Returns:
            Estimates of all models (n_models,), on the scale of full scores by a cross-fitted
            offset or inverted line, and the cross-fitted ones of the training models, moved alike
            (n_models,), NaN elsewhere.
        """
        if isinstance(choice, Baseline):
            pool = self._pool[0]
            moved = fit_offset(pool[train], self.evidence.full_scores[train]).apply(pool)
            return moved, np.where(train, moved, np.nan)
        selection, estimator, _ = self._parts(train, choice)
        taught = self.cross_fitted(train, selection, estimator)
        if not np.isfinite(taught[train]).any():
            return np.full(len(train), np.nan), taught
        line = find_calibration(starting_line(self.evidence.kind))
        fitted = line(taught[train], self.evidence.full_scores[train])
        return fitted.apply(self.raw(train, selection, estimator)), fitted.apply(taught)

    def raw(self, train: np.ndarray, selection: str, estimator: str) -> np.ndarray:
        """Return uncalibrated estimates of all models (n_models,); remembered."""
        key = (train.tobytes(), f"{self.k}/{selection}/{estimator}")
        if key not in self._estimates:
            self._estimates[key] = self._fit(train).raw(selection, estimator)
        return self._estimates[key]

    def cross_fitted(self, train: np.ndarray, selection: str, estimator: str) -> np.ndarray:
        """Return estimates of training models by fits without them (n_models,), NaN elsewhere."""
        return cross_fitted(
            lambda inner: self.raw(inner, selection, estimator), train, self.evidence.families
        )

    def set_statistics(
        self, positions: np.ndarray, weights: np.ndarray, estimator: str = SET_STATISTIC
    ) -> np.ndarray:
        """Return a set statistic of every model on a selection; remembered."""
        key = positions.tobytes() + weights.tobytes() + estimator.encode()
        if key not in self._statistics:
            official = estimator == SET_STATISTIC
            statistic = self.statistic if official else find_set_estimator(estimator)
            self._statistics[key] = statistics_of(self.evidence, positions, weights, statistic)
        return self._statistics[key]

    def _parts(self, train: np.ndarray, choice: Variant) -> tuple[str, str, str]:
        """Selector, estimator and calibration of a variant for this kind of task."""
        kind = self.evidence.kind
        estimator = choice.estimator_for(kind)
        if kind == "per_item" and choice.calibration == "linear":
            usable = self._fit(train).usable_estimator(estimator)
            return choice.selection(kind), estimator, choice.calibration_for(usable)
        return choice.selection(kind), estimator, choice.calibration

    def _fit(self, train: np.ndarray) -> TrainingFit:
        key = (train.tobytes(), self.k)
        if key not in self._fits:
            self._fits[key] = TrainingFit(
                evidence=self.evidence,
                train=train,
                k=self.k,
                rng_keys=(self.seed,),
                set_statistics=self.set_statistics,
                response_model=self.response_model,
                costs=self._costs if self.by_token else None,
            )
        return self._fits[key]

    def _calibrate(
        self, raw: np.ndarray, train: np.ndarray, method: str, taught: np.ndarray | None = None
    ) -> np.ndarray:
        """Calibrate (n_draws, n_models) raw estimates on the training models and clip."""
        scores = self.evidence.full_scores[train]
        trained = (raw if taught is None else taught)[:, train]
        if not np.isfinite(trained).any():
            return np.full(raw.shape, np.nan)
        if method == "none":
            calibrated = raw
        elif method == "linear":
            slope, intercept = fit_lines(trained, scores)
            calibrated = slope[:, None] * raw + intercept[:, None]
        else:
            fitter = find_calibration(method)
            calibrated = np.stack(
                [fitter(t, scores).apply(r) for t, r in zip(trained, raw, strict=True)]
            )
        return np.clip(calibrated, *legal_range(self.evidence.task_type))

    def _baseline(self, train: np.ndarray, choice: Baseline) -> np.ndarray:
        """(n_draws, n_models) raw estimates of a baseline."""
        if choice.source in ("pool", CROSS_TASK):
            return self._pool
        return self._random if choice.source == "random" else self._same_token(train)

    @cached_property
    def _costs(self) -> np.ndarray:
        """(n_items,) what encoding each item costs."""
        evidence = self.evidence
        return item_costs(evidence.task_type, len(evidence.items), self.token_costs)

    @cached_property
    def _pool(self) -> np.ndarray:
        """(1, n_models) scores on the whole pool."""
        return self.evidence.pool_scores[None]

    @cached_property
    def _random(self) -> np.ndarray:
        """(n_draws, n_models) raw estimates of uniform random selections."""
        n_items = len(self.evidence.items)
        k = min(self.baseline_k or self.k, n_items)
        keys = (self.seed, self.evidence.task, "random baseline", k)
        return self._means_of(
            [draw(n_items, k, generator(*keys, d)) for d in range(self.random_draws)]
        )

    def _same_token(self, train: np.ndarray) -> np.ndarray:
        """(n_draws, n_models) raw estimates of random selections that cost what the other does."""
        costs, n_items = self._costs, len(self.evidence.items)
        if np.ptp(costs) == 0.0:
            budget = float(costs[0] * min(self.k, n_items))
        else:
            chosen = self._fit(train).select(self.compared.selection(self.evidence.kind))[1]
            budget = rounded_budget(float(costs[chosen].sum()))
        if budget not in self._paid:
            keys = (self.seed, self.evidence.task, "same-token baseline")
            draws = same_token_draws(costs, budget, keys, self.random_draws)
            self._paid[budget] = self._means_of(draws)
        return self._paid[budget]

    def _means_of(self, draws: Sequence[np.ndarray]) -> np.ndarray:
        """(n_draws, n_models) means, or set statistics, on each draw's items."""
        evidence, mass = self.evidence, pool_weights(self.evidence)
        rows: list[np.ndarray] = []
        for chosen in draws:
            weights = mass[chosen] / mass[chosen].sum()
            if evidence.kind == "per_item":
                rows.append(weighted_mean(evidence.outcomes[:, chosen], weights))
            else:
                rows.append(self.set_statistics(chosen, weights))
        return np.stack(rows)
