"""Facility location: items such that every pool item correlates with one of them.

Maximises the sum over pool items of mass times the greatest correlation, over models, with a chosen
item: monotone submodular, so greedy reaches 1 - 1/e of the maximum. Unlike k-means it does not
prefer items of high variance, and it holds up with few models (arXiv 2607.09739, `method.md` 2.3).
A chosen item weighs the mass of the items that it covers best.
"""

from __future__ import annotations

import heapq

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit
from mteblite.selections.anchor import outcome_vectors
from mteblite.selections.quotas import within_strata
from mteblite.selections.selector import Selected, pool_weights

DECIMALS = 9


def select_facility(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator
) -> Selected:
    """Choose k items within the strata."""
    del fit
    vectors, mass = outcome_vectors(evidence.outcomes), pool_weights(evidence)

    def choose(members: np.ndarray, count: int) -> Selected:
        similarity = correlations(vectors[members])
        places = greedy_cover(similarity, mass[members], count)
        return places, cover_weights(similarity, mass[members], places)

    return within_strata(evidence, k, rng, choose)


def correlations(vectors: np.ndarray) -> np.ndarray:
    """Return correlations (n, n) of items over models, negative ones as 0.

    An item on which all models agree correlates with its equals alone.
    """
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    size = np.sqrt((centred**2).sum(axis=1))
    flat = size < 1e-9
    unit = centred / np.where(flat, 1.0, size)[:, None]
    found = np.clip(np.round(unit @ unit.T, DECIMALS), 0.0, 1.0)
    if flat.any():
        level = vectors.mean(axis=1)[flat]
        found[np.ix_(flat, flat)] = np.abs(level[:, None] - level) < 1e-9
    np.fill_diagonal(found, 1.0)
    return found


def greedy_cover(similarity: np.ndarray, mass: np.ndarray, k: int) -> np.ndarray:
    """Return k items in greedy order, ties by position.

    Lazy (Minoux 1978): gains only fall, so an item whose old gain is no longer the greatest need
    not be looked at again.

    Args:
        similarity: (n, n) in [0, 1], column j = how well j covers each item.
        mass: (n,) positive.
        k: items to choose, at most n.
    """
    covered = np.zeros(len(mass))
    gains = np.round(mass @ similarity, 12)
    heap = [(-gain, item, 0) for item, gain in enumerate(gains.tolist())]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < k:
        gain, item, seen = heapq.heappop(heap)
        if seen == len(chosen):
            chosen.append(item)
            covered = np.maximum(covered, similarity[:, item])
            continue
        gain = -round(float(mass @ np.maximum(similarity[:, item] - covered, 0.0)), 12)
        heapq.heappush(heap, (gain, item, len(chosen)))
    return np.array(chosen)


def cover_weights(similarity: np.ndarray, mass: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the mass (k,) of the items that each chosen one covers best; itself always."""
    home = np.argmax(similarity[:, chosen], axis=1)
    home[chosen] = np.arange(len(chosen))
    return np.bincount(home, weights=mass, minlength=len(chosen))
