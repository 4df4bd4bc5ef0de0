"""Divide K items over strata, and limit the number of cells and labels for a small K."""

from __future__ import annotations

import numpy as np

MIN_ITEMS = 4
"""Fewest items of a cell or a cluster label: with one item per label, V-measure is 1 for every
model (docs/methods.md, Noise of set metrics)."""


def allocate(shares: np.ndarray, sizes: np.ndarray, k: int) -> np.ndarray:
    """Return the number of items of each stratum: proportional, by largest remainder.

    Every stratum gets at least one item where k suffices, and at most its size. The shares
    (n_strata,) are positive masses.

    Raises:
        ValueError: the strata hold fewer than k items.
    """
    if sizes.sum() < k:
        raise ValueError(f"cannot take {k} items from strata that hold {int(sizes.sum())}")
    quota = np.zeros(len(sizes), dtype=int)
    if k >= len(sizes):
        quota += 1
    while quota.sum() < k:
        ideal = k * shares / shares.sum()
        lack = np.where(quota < sizes, np.maximum(ideal - quota, 1e-9 * shares), -np.inf)
        whole = np.minimum(np.floor(np.maximum(lack, 0.0)).astype(int), sizes - quota)
        if 0 < whole.sum() <= k - quota.sum():
            quota += whole
            continue
        quota[int(np.argmax(np.round(lack, 12)))] += 1
    return quota


def affordable(n_groups: int, k: int) -> int:
    """Return the number of groups with MIN_ITEMS each among k items, at least 2 where k >= 2."""
    return min(n_groups, max(2 if k >= 2 else 1, k // MIN_ITEMS))
