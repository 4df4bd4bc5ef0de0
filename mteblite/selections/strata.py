"""Strata of a task's items: cells, labels, gold bins, and quantiles of difficulty."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.task_types.registry import find_type

GOLD_BINS = 5
DECIMALS = 6
"""Difficulties that are equal to this many decimals are ties, whatever the float32 noise."""


def cells(items: pd.DataFrame) -> np.ndarray:
    """Return the cell (split, hf_subset) of each item as codes in sorted order (n_items,)."""
    keys = items["split"].astype(str) + "\x1f" + items["hf_subset"].astype(str)
    return codes(keys)


def label_strata(evidence: TaskEvidence) -> np.ndarray:
    """Return codes (n_items,): 5 equal-width bins of gold scores, else the pool's strata."""
    items = evidence.items
    gold = items["gold"].to_numpy(dtype=float)
    if strata_of(evidence) == "gold" and np.isfinite(gold).all():
        low, high = gold.min(), gold.max()
        width = (high - low) or 1.0
        place = np.floor((gold - low) / width * GOLD_BINS + 1e-9).astype(int)
        return codes(pd.Series(np.minimum(place, GOLD_BINS - 1)))
    return codes(items["stratum"].astype(object).where(items["stratum"].notna(), ""))


def strata_of(evidence: TaskEvidence) -> str | None:
    """Return the kind of strata of a set metric, see `SetMetric`; None for other tasks."""
    set_metric = find_type(evidence.task_type).set_metric
    return None if set_metric is None else set_metric.strata


def codes(values: pd.Series) -> np.ndarray:
    """Return the rank of each value among the sorted distinct values (n,)."""
    return np.unique(values.astype(str).to_numpy(dtype=str), return_inverse=True)[1]


def difficulty(outcomes: np.ndarray) -> np.ndarray:
    """Return the mean outcome of each item (n_items,), rounded; low = difficult.

    An item without an observed outcome gets the mean of all outcomes.
    """
    seen = np.isfinite(outcomes)
    count = seen.sum(axis=0)
    total = np.where(seen, outcomes, 0.0).sum(axis=0)
    overall = float(total.sum() / max(int(count.sum()), 1))
    return np.round(np.where(count > 0, total / np.maximum(count, 1), overall), DECIMALS)


def difficulty_cells(outcomes: np.ndarray, k: int) -> list[np.ndarray]:
    """Return k groups of item positions of nearly equal size, from hardest to easiest."""
    values = difficulty(outcomes)
    order = np.lexsort((np.arange(len(values)), values))
    return [np.sort(part) for part in np.array_split(order, k)]
