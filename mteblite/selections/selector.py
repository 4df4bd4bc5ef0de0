"""The interface of selectors: functions from evidence to positions and weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit

Selected = tuple[np.ndarray, np.ndarray]
"""Positions (k,) of distinct items in rank order, and their positive weights (k,) with sum 1."""

Selector = Callable[[TaskEvidence, ItemFit, int, np.random.Generator], Selected]
"""(evidence of the training models, fit on them, k < n_items, generator) -> Selected."""


def pool_weights(evidence: TaskEvidence) -> np.ndarray:
    """Return the pool weights (n_items,), normalised to sum 1."""
    return np.asarray(evidence.of_items("pool_weights", lambda: _normalised(evidence)))


def _normalised(evidence: TaskEvidence) -> np.ndarray:
    weights = evidence.items["pool_weight"].to_numpy(dtype=float)
    weights = weights / weights.sum()
    weights.flags.writeable = False  # all callers share this array
    return weights
