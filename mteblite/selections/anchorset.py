"""Anchor points for set metrics: anchors of the per-item outcomes within cells and labels.

A set statistic is computed per cell (split, subset), so each cell gets its share of items. Pairs
are clustered label by label, because average precision needs the share of each label, and a cluster
of pairs of both labels does not keep it. Of cluster labels only a few are used, with several items
each, because otherwise V-measure is nearly 1 for every model (docs/methods.md, Noise of set
metrics). Items with gold scores instead of labels are clustered per cell.
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit
from mteblite.selections.anchor import anchors, outcome_vectors
from mteblite.selections.selector import Measure, Selected, pool_weights
from mteblite.selections.stratified import by_label, label_quotas


def select_anchorset(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator, measure: Measure
) -> Selected:
    """Select k anchors, stratum by stratum, weighted by the pool mass of their clusters."""
    del fit, measure
    vectors, mass = outcome_vectors(evidence.outcomes), pool_weights(evidence)
    chosen: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for group, count, share in label_quotas(evidence, k, rng, by_label=by_label(evidence)):
        if count >= len(group):
            places, weight = np.arange(len(group)), mass[group] / mass[group].sum()
        else:
            places, weight = anchors(vectors[group], mass[group], count, rng)
        chosen.append(group[places])
        weights.append(weight * share)
    weight = np.concatenate(weights)
    return np.concatenate(chosen), weight / weight.sum()
