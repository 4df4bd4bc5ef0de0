"""Divide a selection over strata, and select within each.

A task's score is the mean over its cells (split, subset), so every cell gets its share of items.
Set metrics need both labels of pairs, and a few cluster labels with several documents each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.selections.selector import Selected, pool_weights
from mteblite.selections.stratified import by_label, cell_quotas, label_quotas

Choose = Callable[[np.ndarray, int], Selected]
"""(positions of a stratum, number of items, below its size) -> places within the stratum and their
weights."""


def within_strata(
    evidence: TaskEvidence, k: int, rng: np.random.Generator, choose: Choose
) -> Selected:
    """Select k items, stratum by stratum; the weights of a stratum sum to its pool mass.

    Per-item tasks have a stratum per cell, set metrics one per cell and label. `rng` draws cells
    and cluster labels where k is too small for all.
    """
    mass = pool_weights(evidence)
    chosen: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for members, count, share in _strata(evidence, k, rng):
        if count >= len(members):
            places, weight = np.arange(len(members)), mass[members]
        else:
            places, weight = choose(members, count)
        chosen.append(members[places])
        weights.append(share * weight / weight.sum())
    weight = np.concatenate(weights)
    return np.concatenate(chosen), weight / weight.sum()


def _strata(
    evidence: TaskEvidence, k: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, int, float]]:
    """Return (positions, items to select, pool mass) of every stratum."""
    if evidence.kind != "per_item":
        return label_quotas(evidence, k, rng, by_label=by_label(evidence))
    mass = pool_weights(evidence)
    quotas = cell_quotas(evidence, k, rng)
    return [(members, count, float(mass[members].sum())) for members, count in quotas]
