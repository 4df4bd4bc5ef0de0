"""Stratified random items.

Per-item tasks: one item of each of k difficulty quantiles (docs/methods.md, Difficulty strata),
which is valid for models better than every reference model. Set metrics: random items of labels or
five gold bins, allocated proportionally with at least one each. Where k is too small for all cells
or all cluster labels, some are drawn and get at least 4 items, because with one item per label
V-measure is 1 for every model.
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit
from mteblite.selections.allocation import affordable, allocate
from mteblite.selections.selector import Measure, Selected, pool_weights
from mteblite.selections.strata import cells, difficulty_cells, label_strata, strata_of


def select_stratified(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator, measure: Measure
) -> Selected:
    """Draw k items: by difficulty for per-item tasks, by label or gold bin for set metrics."""
    del fit, measure
    if evidence.kind == "per_item":
        return _by_difficulty(evidence, k, rng)
    return draw_by_label(evidence, k, rng)


def _by_difficulty(evidence: TaskEvidence, k: int, rng: np.random.Generator) -> Selected:
    """Return one item per difficulty quantile, weighted by the pool mass of the quantile."""
    mass = pool_weights(evidence)
    groups = difficulty_cells(evidence.outcomes, k)
    # One uniform number per group, so that its item does not depend on the sizes of other groups.
    uniform = rng.random(k)
    chosen = [group[int(u * len(group))] for group, u in zip(groups, uniform, strict=True)]
    return np.array(chosen), np.array([mass[group].sum() for group in groups])


def draw_by_label(evidence: TaskEvidence, k: int, rng: np.random.Generator) -> Selected:
    """Return random items within cells and labels, weighted by pool mass."""
    mass = pool_weights(evidence)
    chosen: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for group, count, share in label_quotas(evidence, k, rng):
        order = rng.permutation(group)[:count]
        chosen.append(order)
        weights.append(share * mass[order] / mass[order].sum())
    weight = np.concatenate(weights)
    return np.concatenate(chosen), weight / weight.sum()


def label_quotas(
    evidence: TaskEvidence, k: int, rng: np.random.Generator, *, by_label: bool = True
) -> list[tuple[np.ndarray, int, float]]:
    """Return (positions, items to select, pool mass) of every stratum, k items in all.

    The items of a stratum are proportional to its size, because pools of pairs are balanced by
    label on purpose. The mass has the label prior (docs/methods.md, Labels and cells). `rng` draws
    cells and cluster labels where k is too small for all. Without `by_label`, a cell is a stratum.
    """
    mass = pool_weights(evidence)
    labels = np.zeros(len(mass), dtype=int)
    if by_label:
        labels = evidence.of_items("label_strata", lambda: label_strata(evidence))
    found: list[tuple[np.ndarray, int, float]] = []
    for members, quota in cell_quotas(evidence, k, rng):
        groups = [members[labels[members] == label] for label in np.unique(labels[members])]
        if strata_of(evidence) == "few_labels":
            groups = _few(groups, affordable(len(groups), quota), quota, rng)
        sizes = np.array([len(group) for group in groups])
        masses = np.array([mass[group].sum() for group in groups])
        masses *= mass[members].sum() / masses.sum()
        counts = allocate(sizes.astype(float), sizes, quota)
        found += [
            (group, int(count), float(part))
            for group, count, part in zip(groups, counts, masses, strict=True)
            if count > 0
        ]
    return found


def by_label(evidence: TaskEvidence) -> bool:
    """Return whether anchors of a task are selected label by label."""
    return strata_of(evidence) in ("labels", "few_labels")


def cell_quotas(
    evidence: TaskEvidence, k: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, int]]:
    """Return (positions, items to select) of as many cells as k suffices for, k items in all.

    A set statistic is computed within each cell, so a cell needs several items or none.
    """
    of_item = evidence.of_items("cells", lambda: cells(evidence.items))
    members = [np.flatnonzero(of_item == cell) for cell in range(of_item.max() + 1)]
    members = _few(members, affordable(len(members), k), k, rng)
    mass = pool_weights(evidence)
    shares = np.array([mass[cell].sum() for cell in members])
    quotas = allocate(shares, np.array([len(cell) for cell in members]), k)
    return [(cell, int(q)) for cell, q in zip(members, quotas, strict=True) if q > 0]


def _few(
    groups: list[np.ndarray], n_groups: int, k: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Draw groups until there are at least n_groups with at least k items together."""
    if n_groups >= len(groups):
        return groups
    taken: list[int] = []
    for place in rng.permutation(len(groups)):
        if len(taken) >= n_groups and sum(len(groups[i]) for i in taken) >= k:
            break
        taken.append(int(place))
    return [groups[i] for i in sorted(taken)]
