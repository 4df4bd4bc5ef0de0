"""What encoding one more item costs: tokens where they are known, else texts by task type.

A query of a retrieval pool brings its own candidates, a pair two texts, a document to classify one.
Costs that all items share (training rows, documents that every query is searched in) do not count:
they are paid whatever is selected.
"""

from __future__ import annotations

import numpy as np

from mteblite.task_types.registry import find_type


def item_costs(task_type: str, n_items: int, token_costs: np.ndarray | None = None) -> np.ndarray:
    """Return what encoding each item costs (n_items,).

    Args:
        task_type: mteb's type.
        n_items: items of the pool.
        token_costs: (n_items,) positive tokens of each item, by item_id; None = texts by type.

    Raises:
        ValueError: the costs are not one positive number per item, or the type is not supported.
    """
    if token_costs is None:
        return np.full(n_items, find_type(task_type).texts_per_item)
    costs = np.asarray(token_costs, dtype=float)
    if costs.shape != (n_items,) or not (np.isfinite(costs) & (costs > 0)).all():
        raise ValueError(
            f"token costs must be one positive number for each of {n_items} items, got shape "
            f"{costs.shape}, least {np.min(costs, initial=np.inf):g}"
        )
    return costs
