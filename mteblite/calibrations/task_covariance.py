"""Mean and covariance of full scores over tasks: three common factors and a diagonal.

Tasks of a suite are strongly correlated: in MTEB(eng, v2) one factor explains 72 % of the variance
over 183 models and three explain 84.5 % (docs/methods.md, Joint calibration). The fit needs only
full scores, so it uses every public model, also those without item outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

N_FACTORS = 3
MIN_UNIQUENESS = 0.05
"""Least share of a task's variance that the factors do not explain."""
MIN_VARIANCE = 1e-8
MAX_ITERATIONS = 30
TOLERANCE = 1e-5


@dataclass(frozen=True)
class TaskCovariance:
    """Prior distribution of a new model's full scores.

    Attributes:
        mean: (n_tasks,).
        covariance: (n_tasks, n_tasks), including the uncertainty of the mean.
        n_effective: number of families.
    """

    mean: np.ndarray
    covariance: np.ndarray
    n_effective: float


def fit_task_covariance(scores: np.ndarray, families: Sequence[str]) -> TaskCovariance:
    """Fit mean and covariance by expectation maximisation, with a factor model of the covariance.

    There are N_FACTORS factors, and fewer with few families. Without missing scores the fit takes
    one step.

    Args:
        scores: (n_models, n_tasks) full scores; NaN = none.
        families: (n_models,) family of each model; every family has the same total weight.

    Raises:
        ValueError: a task has no score at all.
    """
    values = np.asarray(scores, dtype=float)
    seen = np.isfinite(values)
    if not seen.any(axis=0).all():
        place = int(np.flatnonzero(~seen.any(axis=0))[0])
        raise ValueError(
            f"task number {place} has no full score: leave it out of the joint calibration"
        )
    weights = family_weights(families)
    n = float(len(set(families)))
    count = max(0, min(N_FACTORS, int(n) - 2, values.shape[1] - 1))
    mean = _weighted_mean(values, seen, weights)
    start = _weighted_mean((values - mean) ** 2, seen, weights)
    covariance = np.diag(np.maximum(start, MIN_VARIANCE))
    patterns = _patterns(seen)
    for _ in range(MAX_ITERATIONS):
        filled, uncertainty = _fill(values, patterns, weights, mean, covariance)
        new_mean = weights @ filled / weights.sum()
        centred = filled - new_mean
        raw = (centred.T * weights) @ centred / weights.sum() + uncertainty
        new = with_factors(raw * n / max(n - 1.0, 1.0), count)
        change = np.abs(new - covariance).max() / np.abs(new).max()
        mean, covariance = new_mean, new
        if seen.all() or change < TOLERANCE:
            break
    return TaskCovariance(mean, covariance * (1.0 + 1.0 / n), n)


def with_factors(covariance: np.ndarray, n_factors: int) -> np.ndarray:
    """Return the covariance with correlations of a few factors and a diagonal.

    Principal factors with iterated communalities; the variances do not change.
    """
    sd = np.sqrt(np.maximum(np.diag(covariance), MIN_VARIANCE))
    correlation = covariance / np.outer(sd, sd)
    np.fill_diagonal(correlation, 1.0)
    if n_factors == 0:
        return np.diag(sd**2)
    communality = np.full(len(sd), 1.0 - MIN_UNIQUENESS)
    common = np.zeros_like(correlation)
    for _ in range(20):
        reduced = correlation.copy()
        np.fill_diagonal(reduced, communality)
        values, vectors = np.linalg.eigh(reduced)
        loadings = vectors[:, -n_factors:] * np.sqrt(np.maximum(values[-n_factors:], 0.0))
        size = np.maximum((loadings**2).sum(axis=1), 1e-12)
        loadings *= np.sqrt(np.minimum(1.0, (1.0 - MIN_UNIQUENESS) / size))[:, None]
        common = loadings @ loadings.T
        communality = np.diag(common).copy()
    np.fill_diagonal(common, 1.0)
    return common * np.outer(sd, sd)


def family_weights(families: Sequence[str]) -> np.ndarray:
    """Return 1 / size of its family for each model (n_models,)."""
    _, code, count = np.unique(np.asarray(families, str), return_inverse=True, return_counts=True)
    return np.asarray(1.0 / count[code])


def _patterns(seen: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each set of observed tasks (n_tasks,) with its rows, without rows of all tasks.

    Hundreds of public models lack the same few sets of tasks, and each set needs one solution.
    """
    found, which = np.unique(seen, axis=0, return_inverse=True)
    which = which.reshape(-1)
    return [(p, np.flatnonzero(which == n)) for n, p in enumerate(found) if not p.all()]


def _fill(
    values: np.ndarray,
    patterns: Sequence[tuple[np.ndarray, np.ndarray]],
    weights: np.ndarray,
    mean: np.ndarray,
    covariance: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores with conditional means for missing ones, and the mean of their covariances."""
    filled = np.where(np.isfinite(values), values, mean)
    uncertainty = np.zeros_like(covariance)
    for seen, rows in patterns:
        gone = ~seen
        cross = covariance[np.ix_(gone, seen)]
        gain = np.linalg.solve(covariance[np.ix_(seen, seen)], cross.T).T
        filled[np.ix_(rows, gone)] += (filled[np.ix_(rows, seen)] - mean[seen]) @ gain.T
        left = covariance[np.ix_(gone, gone)] - gain @ cross.T
        uncertainty[np.ix_(gone, gone)] += weights[rows].sum() * 0.5 * (left + left.T)
    return filled, uncertainty / weights.sum()


def _weighted_mean(values: np.ndarray, seen: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted mean over the observed rows (n_tasks,)."""
    mass = weights[:, None] * seen
    return np.asarray((np.where(seen, values, 0.0) * mass).sum(axis=0) / mass.sum(axis=0))
