"""Select K items, or items up to the tokens of K average items by gain per token.

`fisher` maximises a gain. It repeatedly takes the item with the largest gain per token that the
budget still pays. A cheap item of little gain may then exclude an expensive one of large gain, so
the best single item replaces the set where its gain is larger. The result has at least
(1 - 1/e) / 2 of the maximum (Khuller, Moss and Naor 1999; Leskovec et al. 2007). Selectors without
a gain, and set metrics, whose statistics need all labels, take the largest K within the budget.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import RESPONSE_MODELS, ItemFit, restrict, usable_models
from mteblite.selections.fisher import MIN_GAIN, PRIOR_PRECISION, eligible_items
from mteblite.selections.registry import select_positions, selection_rows
from mteblite.selections.selector import Measure, Selected, measure_of, pool_weights
from mteblite.selections.strata import cells

Gain = Callable[[list[int]], np.ndarray]
"""Selected items -> gain of each item (n,); 0 for items that must not be selected."""
PAID = 1.0 + 1e-9
"""Tolerance of a budget: sums in another order differ in their last digits."""
Positions = tuple[str, np.ndarray, np.ndarray]
"""Method used, positions in rank order, weights; see `select_positions`."""
HAS_GAIN = "fisher"
"""The selector that maximises a gain."""
BEST_DRAW = "best_draw"
"""The selector that passes over draws without an estimate, here those that cost too much."""


def choose(
    method: str,
    evidence: TaskEvidence,
    fit: ItemFit,
    k: int,
    rng_keys: tuple[str | int, ...],
    costs: np.ndarray | None = None,
) -> pd.DataFrame:
    """Select k items of a task, or items up to the tokens of k average items.

    Args:
        method: a name in SELECTORS.
        evidence: the training models.
        fit: the items fitted on them.
        k: items, at least 1; k >= n_items returns the whole pool with its pool weights.
        rng_keys: stable keys of every random draw, e.g. (suite, seed).
        costs: (n_items,) positive cost of each item, by item_id; the budget is k times their mean.
            None = k items at any cost.

    Returns:
        Rows in rank order: item_id, method (`strat` where abilities are not usable for the
        selector, `all` for the whole pool), rank (from 1), weight (positive, sum 1).

    Raises:
        ValueError: the method is unknown, k is below 1, or the pool is empty.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        found = choose_positions(method, evidence, fit, k, rng_keys, costs)
    return selection_rows(evidence, *found)


def choose_positions(
    method: str,
    evidence: TaskEvidence,
    fit: ItemFit,
    k: int,
    rng_keys: tuple[str | int, ...],
    costs: np.ndarray | None = None,
    measure: Measure | None = None,
) -> Positions:
    """Return method used, positions in rank order and weights; see `choose`.

    `measure` gives the estimates of the usable models; see `select_positions`.
    """

    def select(name: str, count: int) -> Positions:
        return select_positions(name, evidence, fit, count, rng_keys, measure)

    if costs is None or k < 1:
        return select(method, k)
    budget = k * float(costs.mean())
    whole = costs.sum() <= budget * PAID
    if method == BEST_DRAW and not whole:
        judge = measure or measure_of(restrict(evidence, usable_models(evidence)))
        found = select_positions(
            method, evidence, fit, max(1, int(k)), rng_keys,
            lambda positions, weights: judge(positions, weights)
            * (1.0 if costs[positions].sum() <= budget * PAID else np.nan),
        )  # fmt: skip
        if costs[found[1]].sum() <= budget * PAID:
            return found
    if whole or method != HAS_GAIN or not fit.usable or evidence.kind != "per_item":
        return _largest_paid(lambda count: select(method, count), costs, budget)
    reference = restrict(evidence, usable_models(evidence))
    chosen, weights = _by_cell(reference, fit, costs, budget)
    if len(chosen) == 0:
        return _largest_paid(lambda count: select("strat", count), costs, budget)
    return method, chosen, weights / weights.sum()


def greedy_per_cost(gain: Gain, costs: np.ndarray, budget: float) -> list[int]:
    """Return items by gain per cost (n,), ties by position, or the single item with a larger gain.

    The gain is that of a monotone submodular function. The costs sum to at most `budget`.
    """
    chosen: list[int] = []
    free, left, reached = np.ones(len(costs), dtype=bool), budget * PAID, 0.0
    first = gain([])
    while True:
        gains = gain(chosen) if chosen else first
        rate = np.where(free & (costs <= left) & (gains >= MIN_GAIN), gains / costs, -1.0)
        best = int(np.argmax(rate.round(12)))
        if rate[best] < 0:
            break
        chosen.append(best)
        free[best] = False
        left -= costs[best]
        reached += float(gains[best])
    single = int(np.argmax(np.where(costs <= budget * PAID, first, -1.0).round(12)))
    return [single] if chosen and first[single] > reached + MIN_GAIN else chosen


def information_gain(information: np.ndarray) -> Gain:
    """Return the gain in log posterior precision of (n_models, n_items) information."""

    def gain(chosen: list[int]) -> np.ndarray:
        total = PRIOR_PRECISION + information[:, chosen].sum(axis=1)
        return np.asarray(np.log1p(information / total[:, None]).sum(axis=0))

    return gain


def _by_cell(evidence: TaskEvidence, fit: ItemFit, costs: np.ndarray, budget: float) -> Selected:
    """Return items of each cell; cells get shares of the budget by pool mass."""
    model = RESPONSE_MODELS[fit.response_model]
    information = np.array(model.information(fit.parameters, fit.ability.theta), dtype=float)
    information[:, ~eligible_items(fit, information)] = 0.0
    of_item, mass = cells(evidence.items), pool_weights(evidence)
    chosen: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for cell in range(of_item.max() + 1):
        members = np.flatnonzero(of_item == cell)
        share = float(mass[members].sum())
        gain = information_gain(information[:, members])
        places = np.array(greedy_per_cost(gain, costs[members], budget * share), dtype=int)
        if len(places):
            chosen.append(members[places])
            weights.append(np.full(len(places), share / len(places)))
    if not chosen:
        return np.array([], dtype=int), np.array([])
    return np.concatenate(chosen), np.concatenate(weights)


def _largest_paid(
    select: Callable[[int], Positions], costs: np.ndarray, budget: float
) -> Positions:
    """Return the selection of the largest K within the budget.

    Each K selects other items, so costs are not monotone in K. The search starts a quarter above
    the K of average costs and goes down, because the first K within the budget spends most of it.
    """
    n_items = len(costs)

    def paid(k: int) -> Positions | None:
        chosen = select(k)
        return chosen if costs[chosen[1]].sum() <= budget * PAID else None

    average = int(np.clip(budget * PAID / costs.mean(), 1, n_items))
    step = max(1, average // 25)
    k = average if np.ptp(costs) == 0 else min(n_items, average + max(1, average // 4))
    found = paid(k)
    if found is None:
        while found is None and k > 1:
            k = max(1, k - step)
            found = paid(k)
        step //= 2
    while found is not None and step >= 1 and k < n_items:
        further = min(n_items, k + step)
        more = paid(further)
        k, found, step = (k, found, step // 2) if more is None else (further, more, 2 * step)
    return found if found is not None else ("cheapest", np.array([np.argmin(costs)]), np.ones(1))
