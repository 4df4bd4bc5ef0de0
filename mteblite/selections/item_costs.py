"""Cost of encoding one more item: tokens where they are known, else texts by task type.

The item of a query includes its candidate documents, that of a pair two texts, that of a document
to classify one text. Train rows and shared documents, which every selection encodes, do not count.
"""

from __future__ import annotations

import numpy as np

from mteblite.task_types.registry import find_type


def item_costs(task_type: str, n_items: int, token_costs: np.ndarray | None = None) -> np.ndarray:
    """Return the cost of encoding each item (n_items,): its tokens, by item_id, or texts by type.

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
