"""Baseline: a task is predicted from the model's other tasks alone, without any item of its own.

Tasks of a suite are related enough that this is hard to beat for some (in MTEB(eng, v2) the median
error is 0.7 to 3.3 points by type). Items of a task are worth their tokens only where their
estimate beats this. The other tasks are known as well as pools allow: by their whole pools.
"""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.blup import MAX_DEVIATION, Blup, JointPrediction
from mteblite.calibrations.gaussian import condition, own_variance


def predict_from_others(blup: Blup, estimates: np.ndarray) -> JointPrediction:
    """Return the posterior of each task given the estimates of the others (K = 0 for itself).

    The covariance between tasks is not defined (NaN), since each task has a prediction of its own
    that leaves out another estimate; its diagonal is.

    With S the covariance of the estimates z, E(z_t | others) = z_t - (S^-1 (z - mean))_t /
    (S^-1)_tt and the variance 1 / (S^-1)_tt (Dubrule 1983, leave-one-out kriging): one inverse
    instead of one solve per task. The noise of task t itself is no part of its prediction.
    """
    n_models, n_tasks = estimates.shape
    means = np.empty((n_models, n_tasks))
    covariance = np.full((n_models, n_tasks, n_tasks), np.nan)
    for row, z in enumerate(estimates):
        known = np.isfinite(z) & np.isfinite(blup.noise)
        # Tasks that were not estimated need nothing left out.
        mean, posterior = condition(
            z, blup.noise, blup.prior.mean, blup.prior.covariance, cap=MAX_DEVIATION
        )
        variance = np.diag(posterior).copy()
        if known.any():
            mean[known], variance[known] = _others(blup, z, known)
        means[row] = mean
        covariance[row, np.arange(n_tasks), np.arange(n_tasks)] = variance
    return JointPrediction(means, covariance)


def _others(blup: Blup, z: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each known task given the other known ones."""
    prior, noise = blup.prior, blup.noise[known]
    spread = prior.covariance[np.ix_(known, known)] + np.diag(noise)
    deviation = (z - prior.mean)[known]
    own = own_variance(deviation, np.diag(spread), MAX_DEVIATION)
    spread += np.diag(own)
    precision = np.linalg.inv(spread)
    left = deviation - precision @ deviation / np.diag(precision)
    return prior.mean[known] + left, 1.0 / np.diag(precision) - noise - own
