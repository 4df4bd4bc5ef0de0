"""Predictions of one task after refitting it on some of its models, for many variants at once.

The fits are those of a release (`calibrations.task_fit`). This module adds the baselines, and a
cache for folds with the same training models: a suite of 41 tasks and 46 models takes minutes
instead of days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mteblite.calibrations.estimator import legal_range
from mteblite.calibrations.linear import find_line, offset_line
from mteblite.calibrations.task_fit import TaskFits
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.lines import fit_lines
from mteblite.seeds import generator
from mteblite.selections.item_costs import item_costs
from mteblite.selections.random_items import draw
from mteblite.selections.selector import pool_weights, weighted_mean
from mteblite.validation.same_token import rounded_budget, same_token_draws
from mteblite.validation.variants import COMPARED, CROSS_TASK, Baseline


@dataclass
class TaskRefits:
    """Predictions of one task after refitting it on subsets of its models.

    Attributes:
        fits: the task's fits.
        seed: part of the key of the baselines' draws.
        random_draws: draws of the random baselines.
        token_costs: (n_items,) tokens of each item; None = texts by task type.
        compared: variant whose selection sets the budget of `same_token`.
    """

    fits: TaskFits
    seed: int
    random_draws: int = 50
    token_costs: np.ndarray | None = None
    compared: Variant = COMPARED
    _done: dict[tuple[bytes, str], np.ndarray] = field(default_factory=dict, repr=False)
    _paid: dict[float, np.ndarray] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._baseline_k = self.fits.k

    @property
    def evidence(self) -> TaskEvidence:
        """All models, each with a full score and outcomes."""
        return self.fits.evidence

    def predict_many(
        self, train: np.ndarray, choices: Sequence[Variant | Baseline]
    ) -> dict[str, np.ndarray]:
        """Predict the full scores of all models by fits on the training models.

        Args:
            train: (n_models,) mask of the training models.
            choices: variants and baselines. For a joint calibration the prediction is the estimate
                after its `starting_line`; `JointFolds` has the joint prediction.

        Returns:
            By name (n_draws, n_models) clipped predictions. Only random baselines have several
            draws. NaN where an estimate is undefined.
        """
        found = {}
        for choice in choices:
            number = "" if isinstance(choice, Baseline) else f"{self.fits.k}/"
            key = (train.tobytes(), f"{number}{choice}")
            if key not in self._done:
                values = self._predict(train, choice)
                self._done[key] = np.clip(values, *legal_range(self.evidence.task_type))
            found[str(choice)] = self._done[key]
        self.fits.forget_training()
        return found

    def start(self, train: np.ndarray, choice: Variant | Baseline) -> tuple[np.ndarray, np.ndarray]:
        """Return the estimates before a joint calibration; see `TaskFits.start`.

        Those of the baseline `cross_task` are the scores on whole pools.
        """
        if not isinstance(choice, Baseline):
            return self.fits.start(train, choice)
        pool = self.evidence.pool_scores
        slope, shift = offset_line(pool[train], self.evidence.full_scores[train])
        moved = slope * pool + shift
        return moved, np.where(train, moved, np.nan)

    def _predict(self, train: np.ndarray, choice: Variant | Baseline) -> np.ndarray:
        """Return (n_draws, n_models) predictions, not clipped."""
        if isinstance(choice, Variant):
            return self.fits.calibrated(train, choice)[None]
        raw, scores = self._baseline(train, choice), self.evidence.full_scores[train]
        if not np.isfinite(raw[:, train]).any():
            return np.full(raw.shape, np.nan)
        if choice.calibration == "linear":
            slope, intercept = fit_lines(raw[:, train], scores)
            return np.asarray(slope[:, None] * raw + intercept[:, None])
        lines = [find_line(choice.calibration)(draw[train], scores) for draw in raw]
        return np.stack([slope * r + shift for (slope, shift), r in zip(lines, raw, strict=True)])

    def _baseline(self, train: np.ndarray, choice: Baseline) -> np.ndarray:
        """Return (n_draws, n_models) raw estimates of a baseline."""
        if choice.source in ("pool", CROSS_TASK):
            return self.evidence.pool_scores[None]
        return self._random if choice.source == "random" else self._same_token(train)

    @cached_property
    def _random(self) -> np.ndarray:
        """Raw estimates (n_draws, n_models) of uniform random selections."""
        n_items = len(self.evidence.items)
        k = min(self._baseline_k, n_items)
        keys = (self.seed, self.evidence.task, "random baseline", k)
        return self._means_of(
            [draw(n_items, k, generator(*keys, d)) for d in range(self.random_draws)]
        )

    def _same_token(self, train: np.ndarray) -> np.ndarray:
        """Return (n_draws, n_models) raw estimates of random selections with the compared cost."""
        evidence = self.evidence
        costs = item_costs(evidence.task_type, len(evidence.items), self.token_costs)
        if np.ptp(costs) == 0.0:
            budget = float(costs[0] * min(self.fits.k, len(costs)))
        else:
            selector = self.compared.selection(evidence.kind)
            chosen = self.fits.training(train).select(selector)[1]
            budget = rounded_budget(float(costs[chosen].sum()))
        if budget not in self._paid:
            keys = (self.seed, evidence.task, "same-token baseline")
            draws = same_token_draws(costs, budget, keys, self.random_draws)
            self._paid[budget] = self._means_of(draws)
        return self._paid[budget]

    def _means_of(self, draws: Sequence[np.ndarray]) -> np.ndarray:
        """Return (n_draws, n_models) means, or set statistics, on each draw's items."""
        evidence, mass = self.evidence, pool_weights(self.evidence)
        rows: list[np.ndarray] = []
        for chosen in draws:
            weights = mass[chosen] / mass[chosen].sum()
            if evidence.kind == "per_item":
                rows.append(weighted_mean(evidence.outcomes[:, chosen], weights))
            else:
                rows.append(self.fits.set_statistics(chosen, weights))
        return np.stack(rows)
