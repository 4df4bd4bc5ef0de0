"""Baseline: random items with the same cost in tokens (or texts) as another selection.

At equal K a selection of long items costs more than random items, so a fair comparison needs random
items of the same cost.
"""

from __future__ import annotations

import numpy as np

from mteblite.seeds import generator

STEP = 0.05
"""Budgets are rounded to steps of 5 %, so that folds with similar costs share their draws."""


def rounded_budget(budget: float) -> float:
    """Return the nearest budget on a grid with steps of 5 %, for a positive budget."""
    return float(np.exp(np.round(np.log(budget) / STEP) * STEP))


def same_token_draws(
    costs: np.ndarray, budget: float, rng_keys: tuple[str | int, ...], draws: int
) -> list[np.ndarray]:
    """Return the positions of each random selection within a budget.

    A selection takes items in random order until the next one exceeds the budget, because skipping
    it would prefer short items. It has at least one item. Costs (n_items,) are positive, and draw
    number d has the keys `rng_keys` and d.

    Raises:
        ValueError: the pool is empty.
    """
    if len(costs) == 0:
        raise ValueError("cannot draw from an empty pool: draw the pool again")
    found = []
    for number in range(draws):
        order = generator(*rng_keys, number).permutation(len(costs))
        spent = np.cumsum(costs[order])
        # A tolerance, because sums in another order differ in their last digits.
        count = int(np.searchsorted(spent, budget * (1.0 + 1e-9), side="right"))
        found.append(order[: max(count, 1)])
    return found
