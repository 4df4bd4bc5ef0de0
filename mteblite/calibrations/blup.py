"""The joint calibration: a model's estimates on all tasks, combined by the covariance of tasks.

Calibration task by task shrinks each task towards its mean. It also shrinks the macro mean, where
noise averages out (docs/methods.md, Lines per task). The posterior of all full scores given all
estimates (best linear unbiased prediction) does not shrink the macro mean in this way. It also
predicts tasks without an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mteblite.calibrations.gaussian import condition
from mteblite.calibrations.task_covariance import (
    TaskCovariance,
    family_weights,
    fit_task_covariance,
)

MAX_DEVIATION = 4.0
"""Largest deviation of a task's estimate, in standard deviations; see `condition`."""
MIN_NOISE = 1e-8


@dataclass(frozen=True)
class JointData:
    """Data of the training models for a joint calibration.

    Attributes:
        cross_fitted: (n_train, n_tasks) cross-fitted estimates; NaN = none.
        scores: (n_train, n_tasks) full scores; NaN = none.
        families: (n_train,) families.
        public_scores: (n_public, n_tasks) full scores of further models, of other families than
            those to be predicted; NaN = none.
        public_families: (n_public,) their families.
        prior: mean and covariance of all these scores, where another calibration of the same models
            has fitted them; None = not fitted.
    """

    cross_fitted: np.ndarray
    scores: np.ndarray
    families: tuple[str, ...]
    public_scores: np.ndarray
    public_families: tuple[str, ...]
    prior: TaskCovariance | None = None

    def fitted_prior(self) -> TaskCovariance:
        """Return mean and covariance of full scores over tasks, of training and public models."""
        if self.prior is not None:
            return self.prior
        scores = np.concatenate([self.scores, self.public_scores])
        return fit_task_covariance(scores, (*self.families, *self.public_families))


@dataclass(frozen=True)
class JointPrediction:
    """Predicted full scores of several models.

    Attributes:
        mean: (n_models, n_tasks); NaN = undefined.
        covariance: (n_models, n_tasks, n_tasks) of the prediction errors; NaN = unknown.
    """

    mean: np.ndarray
    covariance: np.ndarray

    def combined(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation (n_models,) of a weighted mean of tasks."""
        variance = np.einsum("t,mtu,u->m", weights, self.covariance, weights)
        return self.mean @ weights, np.sqrt(np.maximum(variance, 0.0))


@dataclass(frozen=True)
class Blup:
    """A fitted joint calibration: prior over tasks, and noise of each task's estimate.

    Attributes:
        prior: mean and covariance of full scores.
        noise: (n_tasks,) variance of estimate minus full score; NaN = unknown.
    """

    prior: TaskCovariance
    noise: np.ndarray

    @classmethod
    def fit(cls, data: JointData) -> Blup:
        """Fit prior and noise.

        Noise is the family-weighted mean square of cross-fitted estimate minus full score. It
        includes the selection of items and the difference of pool and full task.
        """
        residual = data.cross_fitted - data.scores
        seen = np.isfinite(residual)
        mass = family_weights(data.families)[:, None] * seen
        total = mass.sum(axis=0)
        squares = (np.where(seen, residual, 0.0) ** 2 * mass).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            noise = np.where(total > 0, np.maximum(squares / total, MIN_NOISE), np.nan)
        return cls(data.fitted_prior(), noise)

    def predict(self, estimates: np.ndarray) -> JointPrediction:
        """Return the posterior given (n_models, n_tasks) estimates; NaN = not estimated.

        Tasks without an estimate are predicted from the others.
        """
        found = [
            condition(row, self.noise, self.prior.mean, self.prior.covariance, cap=MAX_DEVIATION)
            for row in estimates
        ]
        return JointPrediction(np.array([f[0] for f in found]), np.array([f[1] for f in found]))

    def record(self) -> dict[str, Any]:
        """Return the calibration as values that JSON can hold."""
        return {
            "mean": self.prior.mean.tolist(),
            "covariance": self.prior.covariance.tolist(),
            "n_effective": self.prior.n_effective,
            "noise": [None if not np.isfinite(v) else float(v) for v in self.noise],
        }

    @classmethod
    def from_record(cls, value: Mapping[str, Any]) -> Blup:
        """Return the calibration of a `record`."""
        mean, covariance = (np.array(value[name], float) for name in ("mean", "covariance"))
        prior = TaskCovariance(mean, covariance, value["n_effective"])
        noise = np.array([np.nan if v is None else v for v in value["noise"]], dtype=float)
        return cls(prior, noise)
