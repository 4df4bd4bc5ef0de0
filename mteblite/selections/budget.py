"""Divide a budget of tokens (or texts) over the tasks of a suite: K differs by task.

Equal K per task is inefficient. A query with its documents costs dozens of texts and a pair two,
and most of the variance of the macro mean comes from types of few tasks. Minimising the variance
sum (w_t s_t)^2 / n_t under sum c_t n_t <= budget gives n_t proportional to w_t s_t / sqrt(c_t)
(Neyman 1934 with costs; docs/methods.md, Budgets).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

MIN_ITEMS = 8
"""Fewest items of a task, for the precision of the task's own score."""


def allocate_budget(
    importance: np.ndarray,
    costs: np.ndarray,
    sizes: np.ndarray,
    budget: float,
    *,
    minimum: int = MIN_ITEMS,
) -> np.ndarray:
    """Return the number of items of each task (n_tasks,).

    Args:
        importance: (n_tasks,) positive: weight in the macro mean times spread of an item.
        costs: (n_tasks,) positive: tokens (or texts) of one more item.
        sizes: (n_tasks,) items of the pools.
        budget: tokens (or texts) for the items of all tasks, without fixed costs.
        minimum: fewest items per task; smaller pools are taken whole.

    Raises:
        ValueError: the minimum costs more than the budget.
    """
    least = np.minimum(minimum, sizes).astype(int)
    if costs @ least > budget:
        raise ValueError(
            f"a budget of {budget:g} does not pay {minimum} items per task, which cost "
            f"{costs @ least:g}: raise `token_budget`, or leave it out for the cost of K per task"
        )
    ideal = importance / np.sqrt(costs)

    def counts(scale: float) -> np.ndarray:
        return np.clip(np.floor(scale * ideal), least, sizes).astype(int)

    low, high = 0.0, float((sizes / ideal).max())
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if costs @ counts(middle) <= budget else (low, middle)
    return _spend_rest(counts(low), importance, costs, sizes, budget)


def _spend_rest(
    counts: np.ndarray, importance: np.ndarray, costs: np.ndarray, sizes: np.ndarray, budget: float
) -> np.ndarray:
    """Add single items by reduction of variance per token, as long as the budget allows one."""
    counts = counts.copy()
    while True:
        saved = importance**2 * (1.0 / counts - 1.0 / (counts + 1)) / costs
        payable = (counts < sizes) & (costs @ counts + costs <= budget)
        if not payable.any():
            return counts
        counts[int(np.argmax(np.where(payable, saved, -1.0)))] += 1


def item_spread(outcomes: np.ndarray) -> float:
    """Return the standard deviation of outcomes minus item and model means.

    It is the spread under perfect control of difficulty (docs/methods.md, Spread of items).

    Args:
        outcomes: (n_models, n_items); NaN = not observed.
    """
    seen = np.isfinite(outcomes)
    item = np.where(seen, outcomes, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    rest = np.where(seen, outcomes - item, 0.0)
    model = rest.sum(axis=1, keepdims=True) / np.maximum(seen.sum(axis=1, keepdims=True), 1)
    rest = np.where(seen, rest - model, 0.0)
    n_models = max(len(outcomes), 2)
    return float(np.sqrt((rest**2).sum() / max(seen.sum(), 1) * n_models / (n_models - 1)))


def statistic_spread(
    statistic: Callable[[np.ndarray], np.ndarray],
    full_scores: np.ndarray,
    n_items: int,
    rng: np.random.Generator,
    *,
    k: int = 40,
    draws: int = 20,
) -> float:
    """Return the spread of a set statistic per item, calibrated to the full score.

    Args:
        statistic: positions (k,) -> the statistic of every model (n_models,); NaN = undefined.
        full_scores: (n_models,).
        n_items: items of the pool.
        rng: draws the sets.
        k: items per set.
        draws: sets.

    Returns:
        sqrt(k) times the residual sd of a regression of the full score on the statistic; NaN where
        the statistic is undefined in every draw.
    """
    from mteblite.selections.random_items import draw

    size = min(k, n_items)
    squares: list[float] = []
    for _ in range(draws):
        values = statistic(draw(n_items, size, rng))
        known = np.isfinite(values) & np.isfinite(full_scores)
        if known.sum() < 4:
            continue
        design = np.column_stack([np.ones(known.sum()), values[known]])
        fitted = design @ np.linalg.lstsq(design, full_scores[known], rcond=None)[0]
        squares.append(float(((full_scores[known] - fitted) ** 2).sum() / (known.sum() - 2)))
    return float(np.sqrt(np.mean(squares) * size)) if squares else float("nan")
