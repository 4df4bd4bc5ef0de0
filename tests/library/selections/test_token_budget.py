"""Budgets of tokens: never exceeded, near the optimum, and the same as K where items cost alike."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from support.zoo import make_task

from mteblite.item_parameters.fitting import fit_items
from mteblite.selections.fisher import greedy
from mteblite.selections.registry import SELECTORS
from mteblite.selections.token_budget import choose, greedy_per_cost, information_gain

ROUND = (1 - 1 / np.e) / 2


def for_tokens(method, evidence, fit, costs, budget):
    """Choose items for a budget, which `choose` takes as the tokens of k average items."""
    return choose(method, evidence, fit, budget / costs.mean(), ("t",), costs)


def value(gain, chosen):
    """f(S) as the sum of its steps."""
    return sum(gain(list(chosen[:i]))[item] for i, item in enumerate(chosen))


@pytest.mark.parametrize("seed", range(6))
def test_greedy_stays_within_the_budget_and_above_its_guarantee(seed):
    rng = np.random.default_rng(100 + seed)
    costs = rng.integers(1, 12, size=9).astype(float)
    budget = float(rng.integers(6, 25))
    subsets = [
        s
        for s in chain.from_iterable(combinations(range(9), n) for n in range(1, 10))
        if costs[list(s)].sum() <= budget
    ]
    gain = information_gain(np.random.default_rng(seed).exponential(size=(4, 9)))
    chosen = greedy_per_cost(gain, costs, budget)
    assert costs[chosen].sum() <= budget
    assert len(set(chosen)) == len(chosen)
    assert value(gain, chosen) >= ROUND * max(value(gain, s) for s in subsets)
    singles = [value(gain, [i]) for i in range(9) if costs[i] <= budget]
    assert value(gain, chosen) >= max(singles) - 1e-12


def test_one_dear_good_item_beats_a_cheap_one_of_a_better_rate():
    information = np.array([[0.01, 50.0]])
    costs = np.array([0.001, 100.0])
    assert greedy_per_cost(information_gain(information), costs, 100.0) == [1]
    assert greedy_per_cost(information_gain(information), costs, 100.002) == [0, 1]
    assert greedy_per_cost(information_gain(information), costs, 50.0) == [0]


def test_equal_costs_give_the_greedy_choice_of_k():
    rng = np.random.default_rng(0)
    information = rng.exponential(size=(7, 60))
    found = greedy_per_cost(information_gain(information), np.full(60, 0.1), 0.1 * 11)
    assert found == greedy(information, 11).tolist()


@pytest.mark.parametrize("task_type", ["Retrieval", "PairClassification"])
@pytest.mark.parametrize("method", SELECTORS)
def test_every_selector_takes_a_budget(method, task_type):
    evidence = make_task(task_type=task_type, n_items=120, cells=2)
    costs = np.random.default_rng(0).integers(10, 400, size=120).astype(float)
    fit = fit_items(evidence)
    for budget in (500.0, 3000.0):
        found = for_tokens(method, evidence, fit, costs, budget)
        places = [int(i[1:]) for i in found["item_id"]]
        assert costs[places].sum() <= budget
        assert found["item_id"].is_unique
        assert (found["weight"] > 0).all()
        assert found["weight"].sum() == pytest.approx(1.0)
        assert found["rank"].tolist() == list(range(1, len(found) + 1))
        again = for_tokens(method, evidence, fit, costs, budget)
        assert found.equals(again)
    # What is left could at most pay a few more of the items.
    assert costs[places].sum() > budget - 2 * costs.max()


def test_gain_per_token_buys_more_information_than_gain_alone():
    evidence = make_task(n_items=150, binary=True)
    fit = fit_items(evidence)
    costs = np.where(np.arange(150) % 2, 20.0, 200.0)
    by_token = for_tokens("fisher", evidence, fit, costs, 1000.0)
    uniform = choose("fisher", evidence, fit, len(by_token), ("t",))
    spent = costs[[int(i[1:]) for i in uniform["item_id"]]].sum()
    # As many items chosen without regard to length cost several times the budget.
    assert spent > 1500.0
    assert len(by_token) > 1000.0 / 200.0


def test_equal_costs_pay_exactly_k_items():
    evidence = make_task(n_items=100)
    fit = fit_items(evidence)
    for method in SELECTORS:
        found = for_tokens(method, evidence, fit, np.full(100, 7.0), 7.0 * 15)
        assert len(found) == 15, method
    for method in ("anchor", "strat", "random"):
        found = for_tokens(method, evidence, fit, np.full(100, 7.0), 7.0 * 15)
        assert found.equals(choose(method, evidence, fit, 15, ("t",)))


def test_a_budget_for_everything_takes_the_pool_and_the_least_takes_the_cheapest_item():
    evidence = make_task(n_items=30)
    fit = fit_items(evidence)
    costs = np.full(30, 5.0)
    found = for_tokens("fisher", evidence, fit, costs, 150.0)
    assert found["method"].unique().tolist() == ["all"]
    assert len(found) == 30
    costs[3] = 1.0
    found = for_tokens("anchor", evidence, fit, costs, costs.mean())
    assert found["item_id"].tolist() == [evidence.items["item_id"][3]]
