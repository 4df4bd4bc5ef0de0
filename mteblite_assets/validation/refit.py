"""Refit one task on some of its models and predict all of them, for many variants at once.

Selections are shared by the estimators that use them, and results by folds that leave out the
same models, so a suite of 41 tasks by 46 models costs minutes, not days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mteblite_assets.calibrations.estimator import EstimationContext, legal_range
from mteblite_assets.calibrations.linear import find_calibration, fit_lines
from mteblite_assets.calibrations.mean import weighted_mean
from mteblite_assets.calibrations.registry import (
    NEEDS_ABILITY,
    SET_STATISTIC,
    Statistic,
    estimate_set,
    find_estimator,
)
from mteblite_assets.calibrations.variant import Variant
from mteblite_assets.item_parameters.evidence import TaskEvidence
from mteblite_assets.item_parameters.fitting import ItemFit, fit_items
from mteblite_assets.seeds import generator
from mteblite_assets.selections.random_items import draw
from mteblite_assets.selections.registry import select_positions
from mteblite_assets.selections.selector import pool_weights
from mteblite_assets.validation.variants import Baseline

Positions = tuple[np.ndarray, np.ndarray]


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
        """Return `predict` of several variants by name, fitting and selecting once."""
        kind = self.evidence.kind
        fold: _Fold | None = None
        found: dict[str, np.ndarray] = {}
        for choice in choices:
            if isinstance(choice, Baseline):
                found[str(choice)] = self.predict(train, choice)
                continue
            part = (choice.selection(kind), choice.estimator_for(kind), choice.calibration)
            key = (train.tobytes(), "/".join(part))
            if key not in self._done:
                fold = fold or _Fold(self, train)
                raw = fold.raw(part[0], part[1])[None]
                self._done[key] = self._calibrate(raw, train, part[2])
            found[str(choice)] = self._done[key]
        return found

    def set_statistics(self, positions: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the official statistic of every model on a selection; remembered."""
        key = positions.tobytes() + weights.tobytes()
        if key not in self._statistics:
            observations = self.evidence.observations
            if observations is None:
                raise ValueError(f"{self.evidence.task}: a set metric needs observations")
            rows = self.evidence.items.iloc[positions].reset_index(drop=True)
            kind = self.evidence.task_type
            self._statistics[key] = np.array(
                [
                    estimate_set(kind, o[positions], rows, weights, statistic=self.statistic)
                    for o in observations
                ]
            )
        return self._statistics[key]

    def _calibrate(self, raw: np.ndarray, train: np.ndarray, method: str) -> np.ndarray:
        """Calibrate (n_draws, n_models) raw estimates on the training models and clip."""
        scores = self.evidence.full_scores[train]
        trained = raw[:, train]
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


@dataclass
class _Fold:
    """One training set: its fit and selections, made when first asked for."""

    task: TaskRefits
    train: np.ndarray
    _selected: dict[str, Positions] = field(default_factory=dict)

    def raw(self, selection: str, estimator: str) -> np.ndarray:
        """Raw estimates of all models (n_models,)."""
        evidence = self.task.evidence
        chosen, weights = self._select(selection)
        if estimator == SET_STATISTIC:
            return self.task.set_statistics(chosen, weights)
        if estimator in NEEDS_ABILITY and not self._fit.usable:
            estimator = "mean"
        context = EstimationContext(
            positions=chosen,
            weights=weights,
            pool_weights=pool_weights(evidence),
            parameters=self._fit.parameters,
            response_model=self._fit.response_model,
            bounds=legal_range(evidence.task_type),
        )
        return find_estimator(estimator)(evidence.outcomes[:, chosen], context)

    @cached_property
    def _reference(self) -> TaskEvidence:
        return self.task.evidence.only_models(self.train)

    @cached_property
    def _fit(self) -> ItemFit:
        return fit_items(self._reference, self.task.response_model)

    def _select(self, selection: str) -> Positions:
        if selection not in self._selected:
            keys = (self.task.seed,)
            chosen = select_positions(selection, self._reference, self._fit, self.task.k, keys)
            self._selected[selection] = chosen[1:]
        return self._selected[selection]
