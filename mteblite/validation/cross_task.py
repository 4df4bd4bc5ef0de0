"""Baseline: the prediction of a task from the model's other tasks, without any item of the task.

Tasks of a suite are strongly correlated: in MTEB(eng, v2) the median error of this baseline is 0.7
to 3.3 points by type. Items of a task are useful only where their estimate has a smaller error. The
estimates of the other tasks come from their whole pools.
"""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.blup import MAX_DEVIATION, Blup, JointPrediction
from mteblite.calibrations.gaussian import condition, own_variance


def predict_from_others(blup: Blup, estimates: np.ndarray) -> JointPrediction:
    """Return the posterior of each task given the estimates of the others.

    Only the diagonal of the covariance is defined, because each prediction leaves out another
    estimate. The other elements are NaN.

    With S the covariance of the estimates z, E(z_t | others) = z_t - (S^-1 (z - mean))_t /
    (S^-1)_tt and the variance 1 / (S^-1)_tt (Dubrule 1983, leave-one-out kriging): one inverse
    instead of one solve per task. The prediction of task t does not include the noise of task t.
    """
    n_models, n_tasks = estimates.shape
    means = np.empty((n_models, n_tasks))
    covariance = np.full((n_models, n_tasks, n_tasks), np.nan)
    for row, z in enumerate(estimates):
        known = np.isfinite(z) & np.isfinite(blup.noise)
        # A task without an estimate has the posterior given all estimates.
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
    """Return mean and variance of each known task given the other known ones."""
    prior, noise = blup.prior, blup.noise[known]
    spread = prior.covariance[np.ix_(known, known)] + np.diag(noise)
    deviation = (z - prior.mean)[known]
    own = own_variance(deviation, np.diag(spread), MAX_DEVIATION)
    spread += np.diag(own)
    precision = np.linalg.inv(spread)
    left = deviation - precision @ deviation / np.diag(precision)
    return prior.mean[known] + left, 1.0 / np.diag(precision) - noise - own
