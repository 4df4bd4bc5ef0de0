"""Weighted k-means on small matrices, several starts.

Lloyd's algorithm with k-means++ starts (Arthur and Vassilvitskii 2007), compiled. The matrices
here have 1,000 items by 45 models, or 20 documents. On these scikit-learn spends most of its time
outside its loops.
A point with two nearest centroids goes to the cluster with the lower number, on every machine.
"""

from __future__ import annotations

import numpy as np

N_STARTS = 5
MAX_ITERATIONS = 100
N_TRIALS = 3
TIE_BIAS = 1e-9
"""Added per cluster number, so that float noise does not decide between equal distances."""


def kmeans(
    points: np.ndarray,
    weights: np.ndarray,
    k: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster distinct points; of several starts the least weighted squared distance wins.

    Args:
        points: (n, d) distinct rows, n >= k.
        weights: (n,) positive weights.
        k: number of clusters.
        rng: draws the starts.

    Returns:
        Centroids (k, d) and the cluster of each point (n,); no cluster is empty.

    Raises:
        ValueError: there are fewer points than clusters.
    """
    from mteblite.kmeans_compiled import choose_starts, lloyd

    if len(points) < k:
        raise ValueError(f"cannot make {k} clusters of {len(points)} distinct points")
    if len(points) == k:
        return points.copy(), np.arange(k)
    rows = np.ascontiguousarray(points, dtype=float)
    mass = np.ascontiguousarray(weights, dtype=float)
    squares = np.einsum("ij,ij->i", rows, rows)
    starts = choose_starts(rows, squares, mass, k, rng.random((k, N_STARTS, N_TRIALS)))
    found = [lloyd(rows, squares, mass, rows[s], MAX_ITERATIONS, TIE_BIAS) for s in starts]
    labels, _, centers = min(found, key=lambda result: round(float(result[1]), 9))
    return centers, labels


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of a matrix, which `kmeans` needs.

    Args:
        rows: (n, d).

    Returns:
        First position of each distinct row, in order, and the distinct row of each row (n,).
    """
    # Rows are compared by their bytes, because np.unique would sort them. -0.0 + 0.0 is 0.0.
    number: dict[bytes, int] = {}
    code = np.array([number.setdefault(row.tobytes(), len(number)) for row in rows + 0.0])
    return np.unique(code, return_index=True)[1], code
