"""The loops of `kmeans`, compiled by numba. They release Python's lock, so threads run in parallel.

BLAS multiplies points and centroids. Only a few passes over (n, k) remain.
"""
# numba reads no annotations, and mypy cannot check its functions: the docstrings state the types.
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN201, ANN202

from __future__ import annotations

import numpy as np

from mteblite.compiling import compiled

ROUND = 1e9
"""Costs of trial centroids are compared to nine decimals, so that rounding errors do not decide."""
ZERO = 1e-12


@compiled
def choose_starts(points, squares, weights, k, uniform):
    """Return the row numbers (n_starts, k) of the points that k-means++ starts from.

    Each is the best of a few points drawn in proportion to squared distance.

    points (n, d), squares (n,) of their norms, weights (n,), uniform (k, n_starts, trials).
    """
    n, d = points.shape
    _, n_starts, trials = uniform.shape
    chosen = np.zeros((n_starts, k), np.int64)
    closest = np.ones((n_starts, n))
    picked = np.empty(n_starts * trials, np.int64)
    centers = np.empty((n_starts * trials, d))
    for place in range(k):
        for start in range(n_starts):
            mass = np.cumsum(closest[start] * weights)
            for trial in range(trials):
                target = uniform[place, start, trial] * mass[-1]
                found = min(np.searchsorted(mass, target, side="right"), n - 1)
                picked[start * trials + trial] = found
                centers[start * trials + trial] = points[found]
        products = np.dot(centers, points.T)
        for start in range(n_starts):
            least, best = np.inf, 0
            for trial in range(trials):
                row = start * trials + trial
                _closer(products[row], squares, squares[picked[row]], closest[start], place == 0)
                cost = np.floor(np.dot(products[row], weights) * ROUND + 0.5)
                if cost < least:
                    least, best = cost, row
            chosen[start, place] = picked[best]
            closest[start] = products[best]
    return chosen


@compiled
def _closer(products, squares, own, closest, first):
    """Turn products with a new centroid into squared distances to the nearest one so far."""
    for i in range(len(products)):
        distance = squares[i] - 2.0 * products[i] + own
        distance = distance if distance >= ZERO else 0.0
        products[i] = distance if first or distance < closest[i] else closest[i]


@compiled
def lloyd(points, squares, weights, centers, max_iterations, tie_bias):
    """Move one start to its local minimum; return labels (n,), cost and centroids (k, d).

    Ties go to the lower cluster. An empty one takes the point farthest from its own centroid.
    """
    n, k = len(points), len(centers)
    centers = centers.copy()
    labels, nearest = np.full(n, -1), np.empty(n)
    for _ in range(max_iterations):
        before = labels.copy()
        _assign(np.dot(centers, points.T), centers, tie_bias, labels, nearest)
        if (labels == before).all():
            break
        _fill_empty(points, centers, labels, k)
        _move(points, weights, labels, centers)
    return labels, np.sum(weights * (nearest + squares)), centers


@compiled
def _assign(products, centers, tie_bias, labels, nearest):
    """Label every point; `nearest` is the squared distance minus the point's own square.

    The inner loop runs over points, so that the compiler can use vector instructions.
    """
    nearest[:] = np.inf
    for j in range(len(centers)):
        offset = np.sum(centers[j] * centers[j]) + tie_bias * j
        for i in range(len(labels)):
            distance = offset - 2.0 * products[j, i]
            closer = distance < nearest[i]
            nearest[i] = distance if closer else nearest[i]
            labels[i] = j if closer else labels[i]


@compiled
def _move(points, weights, labels, centers):
    """Put every centroid at the weighted mean of its points."""
    mass = np.zeros(len(centers))
    centers[:] = 0.0
    for i in range(len(points)):
        label, weight = labels[i], weights[i]
        mass[label] += weight
        for axis in range(points.shape[1]):
            centers[label, axis] += weight * points[i, axis]
    for label in range(len(centers)):
        centers[label] /= mass[label]


@compiled
def _fill_empty(points, centers, labels, k):
    """Give each empty cluster the point that lies farthest from its own centroid."""
    counts = np.bincount(labels, minlength=k)
    if counts.min() > 0:
        return
    far = np.empty(len(points))
    for i in range(len(points)):
        gap = points[i] - centers[labels[i]]
        far[i] = np.floor(np.sum(gap * gap) * ROUND + 0.5)
    for empty in np.flatnonzero(counts == 0):
        point, most = -1, -1.0
        for i in range(len(points)):
            if counts[labels[i]] > 1 and far[i] > most:
                point, most = i, far[i]
        counts[labels[point]] -= 1
        counts[empty] += 1
        labels[point] = empty
        far[point] = -2.0
