"""Weighted k-means on small matrices, several starts.

Lloyd's algorithm with k-means++ starts (Arthur and Vassilvitskii 2007), compiled: the matrices
here are 1,000 items by 45 models, or 20 documents, where scikit-learn spends most of its time
outside its loops.
Equidistant points go to the lower cluster on every machine.
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
    *,
    n_starts: int = N_STARTS,
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster distinct points.

    Args:
        points: (n, d) distinct rows, n >= k.
        weights: (n,) positive weights.
        k: clusters.
        rng: draws the starts.
        n_starts: the start with the least weighted squared distance wins.

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
    starts = choose_starts(rows, squares, mass, k, rng.random((k, n_starts, N_TRIALS)))
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for start in starts:
        labels, cost, centers = lloyd(rows, squares, mass, rows[start], MAX_ITERATIONS, TIE_BIAS)
        if best is None or round(float(cost), 9) < best[0]:
            best = (round(float(cost), 9), centers, labels)
    assert best is not None  # n_starts >= 1
    return best[1], best[2]


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what `kmeans` asks for: rows without their copies.

    Args:
        rows: (n, d).

    Returns:
        First position of each distinct row, in order, and the distinct row of each row (n,).
    """
    # By their bytes, which np.unique would sort; adding zero turns -0.0 into 0.0.
    place: dict[bytes, int] = {}
    code = np.array([place.setdefault(row.tobytes(), len(place)) for row in rows + 0.0])
    return np.unique(code, return_index=True)[1], code
