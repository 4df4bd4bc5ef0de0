"""Anchor points for set metrics: anchors of the per-item outcomes within each cell.

A set statistic is computed per cell (split, subset), so each chosen cell gets its share of the
items; with two labels (pair classification) both must be present, or average precision would be
undefined (`method.md` 3.10, 3.14).
"""

from __future__ import annotations

import numpy as np

from mteblite_assets.item_parameters.evidence import TaskEvidence
from mteblite_assets.item_parameters.fitting import ItemFit
from mteblite_assets.selections.anchor import anchors, outcome_vectors
from mteblite_assets.selections.selector import Selected, pool_weights
from mteblite_assets.selections.strata import label_strata
from mteblite_assets.selections.stratified import cell_quotas


def select_anchorset(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator
) -> Selected:
    """Choose k anchors, cell by cell."""
    del fit
    vectors, mass = outcome_vectors(evidence.outcomes), pool_weights(evidence)
    labels = label_strata(evidence) if evidence.task_type == "PairClassification" else None
    chosen: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for members, quota in cell_quotas(evidence, k, rng):
        if quota >= len(members):
            places, weight = np.arange(len(members)), mass[members] / mass[members].sum()
        else:
            places, weight = anchors(vectors[members], mass[members], quota, rng)
            if labels is not None:
                places = _with_all_labels(vectors[members], labels[members], places)
        chosen.append(members[places])
        weights.append(weight * mass[members].sum())
    weight = np.concatenate(weights)
    return np.concatenate(chosen), weight / weight.sum()


def _with_all_labels(vectors: np.ndarray, labels: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Swap the lightest anchors for the nearest items of labels that are missing."""
    places = places.copy()
    for label in np.setdiff1d(labels, labels[places]):
        counts = np.bincount(labels[places], minlength=int(labels.max()) + 1)
        spare = np.flatnonzero(counts[labels[places]] > 1)
        if spare.size == 0:  # fewer items than labels: nothing can be swapped
            break
        swap = spare[-1]  # anchors come from the heaviest down
        distance = np.round(((vectors - vectors[places[swap]]) ** 2).sum(axis=1), 9)
        distance[labels != label] = np.inf
        places[swap] = int(np.argmin(distance))
    return places
