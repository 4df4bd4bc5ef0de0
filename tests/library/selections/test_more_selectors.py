"""Selectors with quotas by difficulty, and budgets over tasks."""

from __future__ import annotations

import numpy as np
import pytest
from support.zoo import make_task

from mteblite.item_parameters.fitting import fit_items
from mteblite.selections.budget import allocate_budget, item_spread, statistic_spread
from mteblite.selections.strata import difficulty
from mteblite.selections.token_budget import choose


def chosen_by(method, evidence, k, key="s"):
    frame = choose(method, evidence, fit_items(evidence), k, (key,))
    return frame["item_id"].str[1:].astype(int).to_numpy(), frame["weight"].to_numpy()


def test_every_subset_gets_its_share_of_items_and_weight():
    evidence = make_task(cells=4)
    places, weights = chosen_by("strat_difficulty", evidence, 24)
    cells = evidence.items["hf_subset"].to_numpy()[places]
    for cell in ("s0", "s1", "s2", "s3"):
        assert (cells == cell).sum() == 6
        assert weights[cells == cell].sum() == pytest.approx(0.25)


def test_set_metrics_get_both_labels_and_few_clusters():
    pairs = make_task(task_type="PairClassification")
    places, _ = chosen_by("strat_difficulty", pairs, 6)
    assert pairs.items["stratum"].iloc[places].nunique() == 2
    clusters = make_task(task_type="Clustering", labels=40)
    places, _ = chosen_by("strat_difficulty", clusters, 20)
    sizes = clusters.items["stratum"].iloc[places].value_counts()
    assert len(sizes) <= 8  # of 40
    assert sizes.max() >= 2


# --- difficulty ------------------------------------------------------------------------------


def test_one_item_per_difficulty_quantile_weighted_by_its_mass():
    evidence = make_task(n_items=200)
    places, weights = chosen_by("strat_difficulty", evidence, 20)
    rank = np.argsort(np.argsort(difficulty(evidence.outcomes), kind="stable"), kind="stable")
    assert sorted(rank[places] // 10) == list(range(20))
    assert weights == pytest.approx(np.full(20, 0.05))


def test_stratified_means_are_unbiased_and_less_noisy_than_random_ones():
    evidence = make_task(n_items=200, binary=True)
    truth = evidence.outcomes.mean(axis=1)
    errors = {}
    for method in ("strat_difficulty", "random"):
        estimates = []
        for seed in range(200):
            places, weights = chosen_by(method, evidence, 20, f"{seed}")
            estimates.append(evidence.outcomes[:, places] @ weights - truth)
        errors[method] = np.array(estimates)
    assert np.abs(errors["strat_difficulty"].mean(axis=0)).max() < 0.03
    assert errors["strat_difficulty"].std() < 0.9 * errors["random"].std()


# --- budgets ---------------------------------------------------------------------------------


def test_budgets_are_spent_near_the_optimum_and_never_exceeded():
    rng = np.random.default_rng(0)
    for _ in range(10):
        importance, costs = rng.random(6) + 0.1, rng.integers(1, 40, size=6).astype(float)
        sizes = rng.integers(10, 400, size=6)
        budget = float(costs @ np.minimum(8, sizes)) * 3
        counts = allocate_budget(importance, costs, sizes, budget)
        assert (counts <= sizes).all()
        assert (counts >= np.minimum(8, sizes)).all()
        spent = costs @ counts
        assert spent <= budget
        assert spent > budget - costs.max() or (counts == sizes).any()
        variance = (importance**2 / counts).sum()
        # Moving the price of an item from any task to any other does not help much.
        for a in range(6):
            for b in range(6):
                moved = counts.astype(float)
                moved[a] -= 1.0
                moved[b] += costs[a] / costs[b]
                if a == b or moved[a] < min(8, sizes[a]) or moved[b] > sizes[b]:
                    continue
                assert (importance**2 / moved).sum() > variance * 0.97


def test_equal_tasks_share_equally_and_cheap_ones_get_more():
    equal = allocate_budget(np.ones(4), np.ones(4), np.full(4, 100), 80)
    assert equal.tolist() == [20, 20, 20, 20]
    cheap = allocate_budget(np.ones(2), np.array([1.0, 16.0]), np.full(2, 1000), 850)
    assert cheap[0] == pytest.approx(4 * cheap[1], rel=0.1)
    with pytest.raises(ValueError, match="does not pay 8 items per task, which cost 16"):
        allocate_budget(np.ones(2), np.ones(2), np.full(2, 100), 15)


def test_spreads():
    rng = np.random.default_rng(0)
    effect = rng.random(500) + rng.random((40, 1))
    noisy = effect + 0.2 * rng.normal(size=(40, 500))
    noisy[3, 4] = np.nan
    assert item_spread(noisy) == pytest.approx(0.2, rel=0.02)
    scores = rng.random(40)
    outcomes = scores[:, None] + 0.3 * rng.normal(size=(40, 500))
    found = statistic_spread(
        lambda places: outcomes[:, places].mean(axis=1), scores, 500, rng, draws=50
    )
    assert found == pytest.approx(0.3, rel=0.15)
    undefined = statistic_spread(lambda places: np.full(40, np.nan), scores, 500, rng)
    assert np.isnan(undefined)
