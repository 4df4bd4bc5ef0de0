"""Uniform random items, weighted by their pool weight."""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit
from mteblite.selections.selector import Measure, Selected, pool_weights


def select_random(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator, measure: Measure
) -> Selected:
    """Draw k items without replacement, independent of outcomes."""
    del fit, measure
    return draw_uniformly(evidence, k, rng)


def draw_uniformly(evidence: TaskEvidence, k: int, rng: np.random.Generator) -> Selected:
    """Draw k items with their pool weights, normalised."""
    chosen = draw(len(evidence.items), k, rng)
    weights = pool_weights(evidence)[chosen]
    return chosen, weights / weights.sum()


def draw(n_items: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return k distinct positions in the order drawn."""
    return rng.permutation(n_items)[:k]
