"""Calibrations over all tasks of a suite at once, on top of cross-fitted estimates per task.

Calibrating task by task shrinks each towards its mean, and the macro mean with them, although the
noise averages out there (`method.md` 0.4). `macro` calibrates the macro mean alone; `blup` combines
a model's estimates on all tasks with how tasks are related. A new one is a function of `JointData`
and one entry in JOINT_LAYERS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mteblite.calibrations.gaussian import condition
from mteblite.calibrations.levels import JOINT
from mteblite.calibrations.linear import fit_linear
from mteblite.calibrations.task_covariance import (
    TaskCovariance,
    family_weights,
    fit_task_covariance,
)

MAX_DEVIATION = 4.0
"""Standard deviations beyond which a task's estimate is not believed further."""
MIN_NOISE = 1e-8


@dataclass(frozen=True)
class JointData:
    """What a joint calibration may learn from: training models alone.

    Attributes:
        taught: (n_train, n_tasks) cross-fitted estimates; NaN = none.
        scores: (n_train, n_tasks) full scores; NaN = none.
        families: (n_train,) families.
        weights: (n_tasks,) weight of each task in the macro mean.
        public_scores: (n_public, n_tasks) full scores of further models, of other families than
            those to be predicted; NaN = none.
        public_families: (n_public,) their families.
        prior: mean and covariance of all these scores where they are fitted already: calibrations
            of other estimates of the same models share them.
    """

    taught: np.ndarray
    scores: np.ndarray
    families: tuple[str, ...]
    weights: np.ndarray
    public_scores: np.ndarray
    public_families: tuple[str, ...]
    prior: TaskCovariance | None = None


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

    def predict(self, estimates: np.ndarray) -> JointPrediction:
        """Return the posterior given (n_models, n_tasks) estimates; NaN = not estimated.

        Tasks without an estimate are predicted from the others.
        """
        found = [
            condition(row, self.noise, self.prior.mean, self.prior.covariance, cap=MAX_DEVIATION)
            for row in estimates
        ]
        return JointPrediction(np.array([f[0] for f in found]), np.array([f[1] for f in found]))


def fit_blup(data: JointData) -> Blup:
    """Fit prior and noise.

    Noise is the family-weighted mean square of cross-fitted estimate minus full score: sampling,
    and what the pool differs from the full task.
    """
    prior = fit_prior(data)
    residual = data.taught - data.scores
    seen = np.isfinite(residual)
    mass = family_weights(data.families)[:, None] * seen
    total = mass.sum(axis=0)
    squares = (np.where(seen, residual, 0.0) ** 2 * mass).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        noise = np.where(total > 0, np.maximum(squares / total, MIN_NOISE), np.nan)
    return Blup(prior, noise)


def fit_prior(data: JointData) -> TaskCovariance:
    """Return mean and covariance of full scores over tasks, of training and public models."""
    if data.prior is not None:
        return data.prior
    scores = np.concatenate([data.scores, data.public_scores])
    return fit_task_covariance(scores, (*data.families, *data.public_families))


def blup_layer(data: JointData, estimates: np.ndarray) -> JointPrediction:
    """Combine a model's estimates on all tasks with the covariance of tasks."""
    return fit_blup(data).predict(estimates)


def macro_layer(data: JointData, estimates: np.ndarray) -> JointPrediction:
    """Calibrate the macro mean by a line and shift every task by the same amount.

    Models without all tasks keep their estimates, shifted by the mean difference alone.
    """
    taught, truth = data.taught @ data.weights, data.scores @ data.weights
    known = np.isfinite(taught) & np.isfinite(truth)
    macro = estimates @ data.weights
    shift = np.zeros(len(estimates))
    if known.any():
        line = fit_linear(taught, truth)
        moved = line.apply(macro) - macro
        offset = float((truth - taught)[known].mean())
        shift = np.where(np.isfinite(moved), moved, offset)
    unknown = np.full((*estimates.shape, estimates.shape[1]), np.nan)
    return JointPrediction(estimates + shift[:, None], unknown)


JointLayer = Callable[[JointData, np.ndarray], JointPrediction]
"""(training data, estimates (n_models, n_tasks)) -> predictions of these models."""

JOINT_LAYERS: dict[str, JointLayer] = {"macro": macro_layer, "blup": blup_layer}
assert tuple(JOINT_LAYERS) == JOINT  # names are known without loading the layers
