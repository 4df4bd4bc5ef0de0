"""Selectors with quotas, facility location, heteroskedastic Fisher, and budgets over tasks."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pytest
from support.zoo import make_models, make_task

from mteblite.item_parameters import heteroskedastic
from mteblite.item_parameters.fitting import fit_items
from mteblite.selections.anchor import anchors
from mteblite.selections.budget import allocate_budget, item_spread, statistic_spread
from mteblite.selections.facility import correlations, cover_weights, greedy_cover
from mteblite.selections.fisher_het import difficulty_weights
from mteblite.selections.registry import SELECTORS, select
from mteblite.selections.strata import difficulty

QUOTA_SELECTORS = ("strat_difficulty", "anchor_irt", "fisher_het", "facility")


def chosen_by(method, evidence, k, key="s"):
    frame = select(method, evidence, fit_items(evidence), k, (key,))
    return frame["item_id"].str[1:].astype(int).to_numpy(), frame["weight"].to_numpy()


@pytest.mark.parametrize("method", QUOTA_SELECTORS)
def test_every_subset_gets_its_share_of_items_and_weight(method):
    evidence = make_task(cells=4)
    places, weights = chosen_by(method, evidence, 24)
    cells = evidence.items["hf_subset"].to_numpy()[places]
    for cell in ("s0", "s1", "s2", "s3"):
        assert (cells == cell).sum() == 6
        assert weights[cells == cell].sum() == pytest.approx(0.25)


@pytest.mark.parametrize("method", QUOTA_SELECTORS)
def test_set_metrics_get_both_labels_and_few_clusters(method):
    pairs = make_task(task_type="PairClassification")
    places, _ = chosen_by(method, pairs, 6)
    assert pairs.items["stratum"].iloc[places].nunique() == 2
    clusters = make_task(task_type="Clustering", labels=40)
    places, _ = chosen_by(method, clusters, 20)
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


# --- facility location -----------------------------------------------------------------------


def test_correlations_equal_numpy_and_flat_items_match_their_equals():
    rng = np.random.default_rng(0)
    vectors = rng.random((8, 12))
    vectors[[2, 3]] = 0.5
    vectors[4] = 0.7
    found = correlations(vectors)
    others = [0, 1, 5, 6, 7]
    expected = np.clip(np.corrcoef(vectors[others]), 0, 1)
    assert found[np.ix_(others, others)] == pytest.approx(expected, abs=1e-8)
    assert found[2, 3] == 1
    assert found[2, 4] == 0
    assert (found[2, others] == 0).all()


def test_lazy_greedy_equals_plain_greedy_and_reaches_its_guarantee():
    rng = np.random.default_rng(1)
    for _ in range(20):
        similarity = correlations(rng.random((14, 6)))
        mass = rng.random(14)
        covered, plain = np.zeros(14), []
        for _ in range(4):
            gains = np.round(mass @ np.maximum(similarity - covered[:, None], 0), 12)
            gains[plain] = -1
            plain.append(int(np.argmax(gains)))
            covered = np.maximum(covered, similarity[:, plain[-1]])
        found = greedy_cover(similarity, mass, 4)
        assert found.tolist() == plain
        best = max(mass @ similarity[:, list(s)].max(axis=1) for s in combinations(range(14), 4))
        assert mass @ similarity[:, found].max(axis=1) >= (1 - 1 / np.e) * best


def test_cover_weights_are_shares_of_the_nearest_and_never_zero():
    similarity = np.array([[1.0, 1.0, 0.2], [1.0, 1.0, 0.2], [0.2, 0.2, 1.0]])
    found = cover_weights(similarity, np.array([0.2, 0.3, 0.5]), np.array([0, 1]))
    # The third item is as near to both: the first gets it; the duplicate keeps itself.
    assert found == pytest.approx([0.7, 0.3])


def test_facility_takes_one_item_of_each_group():
    rng = np.random.default_rng(2)
    signal = rng.normal(size=(5, 15))
    group = np.repeat(np.arange(5), 8)
    vectors = signal[group] + 0.1 * rng.normal(size=(40, 15))
    found = greedy_cover(correlations(vectors), np.full(40, 1 / 40), 5)
    assert sorted(group[found]) == [0, 1, 2, 3, 4]


# --- parameters ------------------------------------------------------------------------------


def test_anchor_irt_clusters_slope_and_intercept():
    evidence = make_task(n_items=100)
    fit = fit_items(evidence)
    places, weights = chosen_by("anchor_irt", evidence, 10)
    vectors = np.column_stack([fit.parameters.slope, fit.parameters.intercept])
    spread = [((vectors - vectors[p]) ** 2).sum(axis=1) for p in places]
    shares = np.bincount(np.argmin(spread, axis=0), minlength=10) / 100
    # Anchors sit near their centroids, so nearest-anchor shares are close to cluster shares.
    assert np.abs(shares - weights).sum() < 0.35
    assert len(set(places) & set(anchors(vectors, np.full(100, 0.01), 100, None)[0])) == 10


def test_heteroskedastic_fisher_tells_more_about_every_model_and_is_less_biased():
    evidence = make_task(families=make_models(30), n_items=400)
    fit = fit_items(evidence, "heteroskedastic")
    information = heteroskedastic.information(fit.parameters, fit.ability.theta)
    level = difficulty(evidence.outcomes)
    places, weights = chosen_by("fisher_het", evidence, 20)
    plain, _ = chosen_by("fisher", evidence, 20)
    assert set(places) != set(plain)
    told = [np.log1p(information[:, s].sum(axis=1)).sum() for s in (places, plain)]
    assert told[0] > told[1]
    equal = np.abs(level[places].mean() - level.mean())
    assert np.abs(level[places] @ weights - level.mean()) < equal


def test_difficulty_weights_by_hand():
    level = np.array([0.0, 0.1, 0.5, 0.9, 0.9])
    mass = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    assert difficulty_weights(level, mass, np.array([0, 3])) == pytest.approx([0.3, 0.7])
    # Two chosen items of one difficulty share what is nearest to them.
    assert difficulty_weights(level, mass, np.array([3, 4])) == pytest.approx([0.5, 0.5])


def test_new_parameter_selectors_fall_back_without_spread_of_abilities():
    evidence = make_task()
    same = dataclasses.replace(evidence, full_scores=np.full(len(evidence.models), 0.5))
    for method in ("fisher_het", "anchor_irt"):
        frame = select(method, same, fit_items(same), 10, ())
        assert frame["method"].unique().tolist() == ["strat"]
    negative = dataclasses.replace(evidence, outcomes=evidence.outcomes - 0.4)
    for method in SELECTORS:
        assert len(chosen_by(method, negative, 10)[0]) == 10


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
