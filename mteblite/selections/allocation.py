"""Share out K items over strata, and decide how many cells and labels K can afford."""

from __future__ import annotations

import numpy as np

MIN_ITEMS = 4
"""Fewest items of a cell or a cluster label that leave a set statistic any information: with one
item per label V-measure is 1 for every model (docs/methods.md, Noise of set metrics)."""


def allocate(shares: np.ndarray, sizes: np.ndarray, k: int) -> np.ndarray:
    """Return how many items each stratum gets: proportional, largest remainder.

    Every stratum gets at least one item where k suffices, never more than it holds.

    Args:
        shares: (n_strata,) positive mass of the strata.
        sizes: (n_strata,) items in them.
        k: items to share out.

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
    """Return how many groups k items can cover with MIN_ITEMS each, at least 1 (2 if possible)."""
    return min(n_groups, max(2 if k >= 2 else 1, k // MIN_ITEMS))
