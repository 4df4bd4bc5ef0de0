"""Anchor points: the item nearest to each k-means centroid of the items' outcome vectors.

Maia Polo et al. 2024 (tinyBenchmarks, arXiv 2402.14992), "correctness anchors"; the weight of an
anchor is the share of the pool in its cluster. Steps: docs/methods.md, Anchor points.
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit
from mteblite.kmeans import distinct_rows, kmeans
from mteblite.selections.selector import Measure, Selected, pool_weights
from mteblite.selections.strata import difficulty

DECIMALS = 6
"""Outcomes are rounded before clustering, so that float32 noise does not split equal items."""


def select_anchor(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator, measure: Measure
) -> Selected:
    """Select k anchors of the whole pool by the training models' outcomes."""
    del fit, measure
    return anchors(outcome_vectors(evidence.outcomes), pool_weights(evidence), k, rng)


def outcome_vectors(outcomes: np.ndarray) -> np.ndarray:
    """Return (n_items, n_models) vectors; a missing outcome becomes the item's mean."""
    filled = np.where(np.isfinite(outcomes), outcomes, difficulty(outcomes))
    return np.round(filled.T.astype(float), DECIMALS)


def anchors(vectors: np.ndarray, mass: np.ndarray, k: int, rng: np.random.Generator) -> Selected:
    """Select k of n items.

    Args:
        vectors: (n_items, d) item vectors.
        mass: (n_items,) positive pool weights.
        k: items to select, k <= n_items. With fewer distinct vectors than k, further items split
            the heaviest clusters.
        rng: draws the starts of k-means.

    Returns:
        Positions (k,) in order of falling cluster weight, ties by position, and weights (k,) with
        sum 1.
    """
    unique, of_item = distinct_rows(vectors)
    unique_mass = np.bincount(of_item, weights=mass)
    centers, labels = kmeans(vectors[unique], unique_mass, min(k, len(unique)), rng)
    cluster = labels[of_item]
    weights = np.bincount(cluster, weights=mass, minlength=len(centers))
    chosen, weight = _nearest_items(vectors, centers, weights)
    if len(chosen) < k:
        chosen, weight = _top_up(cluster, chosen, weight, k)
    order = np.lexsort((chosen, -np.round(weight, 12)))
    return chosen[order], weight[order] / weight.sum()


def _nearest_items(vectors: np.ndarray, centers: np.ndarray, weights: np.ndarray) -> Selected:
    """Return the nearest unused item of each centroid, heaviest cluster first."""
    by_weight = np.lexsort((np.arange(len(centers)), -np.round(weights, 12)))
    distance = ((vectors**2).sum(axis=1)[:, None] - 2.0 * vectors @ centers.T) + (centers**2).sum(
        axis=1
    )
    distance = np.round(distance, 9)
    chosen: list[int] = []
    for cluster in by_weight:
        item = int(np.argmin(distance[:, cluster]))
        distance[item] = np.inf
        chosen.append(item)
    return np.array(chosen), weights[by_weight]


def _top_up(cluster: np.ndarray, chosen: np.ndarray, weight: np.ndarray, k: int) -> Selected:
    """Split the heaviest clusters with unused items until there are k items."""
    picked, share = chosen.tolist(), weight.tolist()
    used = np.zeros(len(cluster), dtype=bool)
    used[chosen] = True
    home = [int(cluster[item]) for item in picked]
    while len(picked) < k:
        free = np.bincount(cluster[~used], minlength=int(cluster.max()) + 1)
        open_places = [p for p in range(len(picked)) if free[home[p]] > 0]
        place = max(open_places, key=lambda p: (round(share[p], 12), -picked[p]))
        item = int(np.flatnonzero(~used & (cluster == home[place]))[0])
        used[item] = True
        share[place] /= 2.0
        picked.append(item)
        share.append(share[place])
        home.append(home[place])
    return np.array(picked), np.array(share)
