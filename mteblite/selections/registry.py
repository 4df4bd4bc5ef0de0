"""All selectors by name. A new one is one file with a `Selector` and one entry here."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit, restrict, usable_models
from mteblite.seeds import generator
from mteblite.selections.anchor import select_anchor
from mteblite.selections.anchorset import select_anchorset
from mteblite.selections.best_draw import select_best_draw
from mteblite.selections.fisher import select_fisher
from mteblite.selections.random_items import select_random
from mteblite.selections.selector import Measure, Selected, Selector, measure_of, pool_weights
from mteblite.selections.strat_difficulty import select_strat_difficulty
from mteblite.selections.stratified import select_stratified

SELECTORS: dict[str, Selector] = {
    "random": select_random,
    "strat": select_stratified,
    "anchor": select_anchor,
    "fisher": select_fisher,
    "anchorset": select_anchorset,
    "strat_difficulty": select_strat_difficulty,
    "best_draw": select_best_draw,
}
NEEDS_ABILITY = frozenset({"fisher"})
"""Selectors that need item parameters; without usable abilities `strat` replaces them."""
ALL_ITEMS = "all"


def selection_rows(
    evidence: TaskEvidence, method: str, chosen: np.ndarray, weights: np.ndarray
) -> pd.DataFrame:
    """Return a selection of positions (k,) in rank order and their weights (k,) as a table.

    Its columns are item_id, method, rank (from 1) and weight.
    """
    return pd.DataFrame(
        {
            "item_id": evidence.items["item_id"].to_numpy()[chosen],
            "method": method,
            "rank": np.arange(1, len(chosen) + 1),
            "weight": weights,
        }
    )


def select_positions(
    method: str,
    evidence: TaskEvidence,
    fit: ItemFit,
    k: int,
    rng_keys: tuple[str | int, ...],
    measure: Measure | None = None,
) -> tuple[str, np.ndarray, np.ndarray]:
    """Return the method used, positions (k,) in rank order and weights (k,); see `choose`.

    `measure` gives the estimates of the usable models; None = `measure_of` them.

    Raises:
        ValueError: the method is unknown, k is below 1, or the pool is empty.
    """
    if method not in SELECTORS:
        raise ValueError(f"selection {method!r} is unknown; allowed: {', '.join(SELECTORS)}")
    n_items = len(evidence.items)
    if k < 1 or n_items == 0:
        raise ValueError(f"{evidence.task}: cannot select {k} of {n_items} items; need k >= 1")
    if k >= n_items:
        return ALL_ITEMS, np.arange(n_items), pool_weights(evidence)
    used = "strat" if method in NEEDS_ABILITY and not fit.usable else method
    rng = generator(*rng_keys, evidence.task, used, k)
    reference = restrict(evidence, usable_models(evidence))
    selected = SELECTORS[used](reference, fit, k, rng, measure or measure_of(reference))
    chosen, weights = _checked(selected, k, evidence.task)
    return used, chosen, weights


def _checked(selected: Selected, k: int, task: str) -> Selected:
    """Check that a selector returned k distinct items and positive weights with sum 1."""
    chosen, weights = selected
    if len(np.unique(chosen)) != k or len(weights) != k:
        raise ValueError(f"{task}: a selector returned {len(np.unique(chosen))} items, not {k}")
    if not (weights > 0).all() or abs(weights.sum() - 1.0) > 1e-9:
        raise ValueError(f"{task}: selection weights must be positive and sum to 1")
    return chosen, weights
