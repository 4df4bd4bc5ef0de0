"""What encoding one more item costs: tokens where they are known, else texts by task type.

A query of a retrieval pool brings its own candidates, a pair two texts, a document to classify one.
Costs that all items share (training rows, documents that every query is searched in) do not count:
they are paid whatever is selected.
"""

from __future__ import annotations

import numpy as np

TEXTS_PER_ITEM: dict[str, float] = {
    "Retrieval": 32.0,
    "Reranking": 25.0,
    "Summarization": 27.0,
    "PairClassification": 2.0,
    "STS": 2.0,
    "BitextMining": 2.0,
    "Classification": 1.0,
    "MultilabelClassification": 1.0,
    "Clustering": 1.0,
}
"""Texts of one item: with them the published selections come within 2 % of their text counts
(MTEB-lite's dataset card: 33,263 texts at K = 20, 64,455 at K = 100)."""


def item_costs(task_type: str, n_items: int, token_costs: np.ndarray | None = None) -> np.ndarray:
    """Return what encoding each item costs (n_items,).

    Args:
        task_type: mteb's type.
        n_items: items of the pool.
        token_costs: (n_items,) positive tokens of each item, by item_id; None = texts by type.

    Raises:
        ValueError: the costs are not one positive number per item, or the type has no text count.
    """
    if token_costs is None:
        if task_type not in TEXTS_PER_ITEM:
            raise ValueError(
                f"no texts per item are known for task type {task_type!r}; give token costs, or "
                f"one of {', '.join(TEXTS_PER_ITEM)}"
            )
        return np.full(n_items, TEXTS_PER_ITEM[task_type])
    costs = np.asarray(token_costs, dtype=float)
    if costs.shape != (n_items,) or not (np.isfinite(costs) & (costs > 0)).all():
        raise ValueError(
            f"token costs must be one positive number for each of {n_items} items, got shape "
            f"{costs.shape}, least {np.min(costs, initial=np.inf):g}"
        )
    return costs
