"""Baseline: random items for the tokens (or texts) that another selection costs.

At equal K a selection of long items spends more than random ones; what it has to beat is random
items for the same money.
"""

from __future__ import annotations

import numpy as np

from mteblite.seeds import generator

STEP = 0.05
"""Budgets are rounded to steps of a twentieth: folds of nearly the same cost share their draws."""


def rounded_budget(budget: float) -> float:
    """Return the nearest budget of a grid whose steps are a twentieth.

    Args:
        budget: positive.
    """
    return float(np.exp(np.round(np.log(budget) / STEP) * STEP))


def same_token_draws(
    costs: np.ndarray, budget: float, rng_keys: tuple[str | int, ...], draws: int
) -> list[np.ndarray]:
    """Return the positions of each random selection that the budget pays.

    Items come in random order until the next one is not paid for; skipping it for cheaper ones
    would prefer short items. At least one item is taken.

    Args:
        costs: (n_items,) positive.
        budget: what the compared selection costs, in the same unit.
        rng_keys: stable keys; draw number d adds d.
        draws: selections.

    Raises:
        ValueError: the pool is empty.
    """
    if len(costs) == 0:
        raise ValueError("cannot draw from an empty pool: draw the pool again")
    found = []
    for number in range(draws):
        order = generator(*rng_keys, number).permutation(len(costs))
        spent = np.cumsum(costs[order])
        # Sums in another order differ in the last digits: an exactly paid item is paid.
        count = int(np.searchsorted(spent, budget * (1.0 + 1e-9), side="right"))
        found.append(order[: max(count, 1)])
    return found
