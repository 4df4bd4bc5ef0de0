"""Refit one task on some of its models and predict all of them, for many variants at once.

Selections are shared by the estimators that use them, and results by folds that leave out the
same models, so a suite of 41 tasks by 46 models costs minutes, not days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mteblite_assets.calibrations.cross_fitted_task import statistics_of
from mteblite_assets.calibrations.cross_fitting import cross_fitted
from mteblite_assets.calibrations.estimator import legal_range
from mteblite_assets.calibrations.levels import CROSS_FITTED, JOINT, starting_line
from mteblite_assets.calibrations.linear import find_calibration, fit_lines
from mteblite_assets.calibrations.mean import weighted_mean
from mteblite_assets.calibrations.registry import (
    SET_STATISTIC,
    Statistic,
    find_set_estimator,
)
from mteblite_assets.calibrations.training_fit import TrainingFit
from mteblite_assets.calibrations.variant import Variant
from mteblite_assets.item_parameters.evidence import TaskEvidence
from mteblite_assets.seeds import generator
from mteblite_assets.selections.random_items import draw
from mteblite_assets.selections.selector import pool_weights
from mteblite_assets.validation.variants import Baseline


@dataclass
class TaskRefits:
    """Predictions of one task after refitting it on subsets of its models.

    Attributes:
        evidence: all models, each with a full score and outcomes.
        k: items to select.
        seed: enters every random draw.
        statistic: the official set statistic.
        response_model: see `fit_items`.
        random_draws: draws of the random baseline.
    """

    evidence: TaskEvidence
    k: int
    seed: int
    statistic: Statistic
    response_model: str = "auto"
    random_draws: int = 50
    _done: dict[tuple[bytes, str], np.ndarray] = field(default_factory=dict, repr=False)
    _estimates: dict[tuple[bytes, str, str], np.ndarray] = field(default_factory=dict, repr=False)
    _fits: dict[bytes, TrainingFit] = field(default_factory=dict, repr=False)
    _statistics: dict[bytes, np.ndarray] = field(default_factory=dict, repr=False)

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
            raw = self._pool if choice.source == "pool" else self._random
            key = (train.tobytes(), f"{choice}")
            if key not in self._done:
                self._done[key] = self._calibrate(raw, train, choice.calibration)
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
            key = (train.tobytes(), f"{selection}/{estimator}/{calibration}")
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

    def start(self, train: np.ndarray, choice: Variant) -> tuple[np.ndarray, np.ndarray]:
        """Return what a joint calibration starts from, not clipped.

        Args:
            train: (n_models,) mask.
            choice: variant; its own calibration plays no part.

        Returns:
            Estimates of all models (n_models,), on the scale of full scores by a cross-fitted
            offset or inverted line, and the cross-fitted ones of the training models, moved alike
            (n_models,), NaN elsewhere.
        """
        selection, estimator, _ = self._parts(train, choice)
        taught = self.cross_fitted(train, selection, estimator)
        if not np.isfinite(taught[train]).any():
            return np.full(len(train), np.nan), taught
        line = find_calibration(starting_line(self.evidence.kind))
        fitted = line(taught[train], self.evidence.full_scores[train])
        return fitted.apply(self.raw(train, selection, estimator)), fitted.apply(taught)

    def raw(self, train: np.ndarray, selection: str, estimator: str) -> np.ndarray:
        """Return uncalibrated estimates of all models (n_models,); remembered."""
        key = (train.tobytes(), selection, estimator)
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
        key = train.tobytes()
        if key not in self._fits:
            self._fits[key] = TrainingFit(
                evidence=self.evidence,
                train=train,
                k=self.k,
                rng_keys=(self.seed,),
                set_statistics=self.set_statistics,
                response_model=self.response_model,
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
        if method == "linear":
            slope, intercept = fit_lines(trained, scores)
            calibrated = slope[:, None] * raw + intercept[:, None]
        else:
            fitter = find_calibration(method)
            calibrated = np.stack(
                [fitter(t, scores).apply(r) for t, r in zip(trained, raw, strict=True)]
            )
        return np.clip(calibrated, *legal_range(self.evidence.task_type))

    @cached_property
    def _pool(self) -> np.ndarray:
        """(1, n_models) scores on the whole pool."""
        return self.evidence.pool_scores[None]

    @cached_property
    def _random(self) -> np.ndarray:
        """(n_draws, n_models) raw estimates of uniform random selections."""
        evidence, mass = self.evidence, pool_weights(self.evidence)
        k = min(self.k, len(mass))
        rows: list[np.ndarray] = []
        for number in range(self.random_draws):
            rng = generator(self.seed, evidence.task, "random baseline", k, number)
            chosen = draw(len(mass), k, rng)
            weights = mass[chosen] / mass[chosen].sum()
            if evidence.kind == "per_item":
                rows.append(weighted_mean(evidence.outcomes[:, chosen], weights))
            else:
                rows.append(self.set_statistics(chosen, weights))
        return np.stack(rows)
