"""Every selector: contract, determinism, edge cases; each rule against an independent check."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from support.zoo import make_items, make_task, shuffled

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import fit_items
from mteblite.kmeans import kmeans
from mteblite.seeds import generator
from mteblite.selections.allocation import affordable, allocate
from mteblite.selections.anchor import anchors
from mteblite.selections.fisher import greedy
from mteblite.selections.registry import SELECTORS
from mteblite.selections.token_budget import choose


def run(method: str, evidence: TaskEvidence, k: int, *keys: str | int) -> pd.DataFrame:
    return choose(method, evidence, fit_items(evidence), k, keys or ("suite", 0))


TASKS = {
    "graded": {},
    "binary": {"binary": True},
    "pairs": {"task_type": "PairClassification"},
    "clustering": {"task_type": "Clustering", "labels": 12},
    "sts": {"task_type": "STS", "cells": 4},
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("method", SELECTORS)
@pytest.mark.parametrize("k", [1, 2, 7, 20, 199])
def test_contract(method, name, k):
    evidence = make_task(**TASKS[name])
    chosen = run(method, evidence, k)
    assert len(chosen) == k
    assert chosen["item_id"].is_unique
    assert chosen["item_id"].isin(evidence.items["item_id"]).all()
    assert chosen["rank"].tolist() == list(range(1, k + 1))
    assert chosen["weight"].sum() == pytest.approx(1.0)
    assert (chosen["weight"] > 0).all()
    pd.testing.assert_frame_equal(chosen, run(method, evidence, k))


@pytest.mark.parametrize("method", SELECTORS)
@pytest.mark.parametrize("name", ["graded", "binary"])
def test_selection_does_not_depend_on_the_order_of_models(method, name):
    evidence = make_task(**TASKS[name])
    pd.testing.assert_frame_equal(run(method, evidence, 20), run(method, shuffled(evidence), 20))


@pytest.mark.parametrize("method", SELECTORS)
@pytest.mark.parametrize("k", [200, 500])
def test_whole_pool_keeps_the_pool_weights(method, k):
    evidence = make_task(cells=3)
    chosen = run(method, evidence, k)
    assert chosen["method"].unique().tolist() == ["all"]
    assert chosen["item_id"].tolist() == evidence.items["item_id"].tolist()
    expected = evidence.items["pool_weight"] / evidence.items["pool_weight"].sum()
    assert chosen["weight"].to_numpy() == pytest.approx(expected.to_numpy())


@pytest.mark.parametrize("method", ["random", "strat", "anchor", "anchorset"])
def test_random_draws_follow_their_keys(method):
    evidence = make_task()
    first, second = run(method, evidence, 20, "a"), run(method, evidence, 20, "b")
    assert set(first["item_id"]) != set(second["item_id"])


def test_tasks_of_equal_pools_draw_different_items():
    first, second = make_task("One"), dataclasses.replace(make_task("One"), task="Two")
    assert set(run("random", first, 20)["item_id"]) != set(run("random", second, 20)["item_id"])


def test_missing_outcomes_do_not_break_any_selector():
    evidence = make_task()
    outcomes = evidence.outcomes.copy()
    outcomes[:, 0] = np.nan
    outcomes[3:, 1] = np.nan
    outcomes[0, 2:50] = np.nan
    holed = dataclasses.replace(evidence, outcomes=outcomes)
    for method in SELECTORS:
        chosen = run(method, holed, 20)
        assert len(chosen) == 20
    assert not {"i00000", "i00001"} & set(run("fisher", holed, 100)["item_id"])


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_all_outcomes_equal_still_gives_k_items(value):
    evidence = make_task()
    flat = dataclasses.replace(evidence, outcomes=np.full_like(evidence.outcomes, value))
    for method in SELECTORS:
        assert len(run(method, flat, 15)) == 15


def test_without_spread_of_abilities_fisher_falls_back_to_strat():
    evidence = make_task()
    same = dataclasses.replace(evidence, full_scores=np.full(len(evidence.models), 0.5))
    assert run("fisher", same, 10)["method"].unique().tolist() == ["strat"]


def test_errors_name_the_task_and_the_way_out():
    evidence = make_task()
    with pytest.raises(ValueError, match="'magic' is unknown; allowed: random, strat"):
        run("magic", evidence, 5)
    with pytest.raises(ValueError, match="Sim: cannot select 0 of 200 items"):
        run("random", evidence, 0)


# --- anchors ---------------------------------------------------------------------------------


def test_anchor_is_the_nearest_item_of_its_centroid_and_weighs_its_cluster():
    rng = np.random.default_rng(0)
    points, mass = rng.random((60, 5)), np.full(60, 1 / 60)
    centers, labels = kmeans(points, mass, 6, generator("x"))
    chosen, weight = anchors(points, mass, 6, generator("x"))
    found = dict(zip(chosen.tolist(), weight.tolist(), strict=True))
    for cluster, center in enumerate(centers):
        assert center == pytest.approx(points[labels == cluster].mean(axis=0))
        nearest = min(range(60), key=lambda i: sum((points[i] - center) ** 2))
        assert found[nearest] == pytest.approx((labels == cluster).mean())


def test_kmeans_reaches_a_fixed_point_near_scikit_learns_best():
    from sklearn.cluster import KMeans

    evidence = make_task(n_items=300)
    points, mass = evidence.outcomes.T, np.full(300, 1.0)
    centers, labels = kmeans(points, mass, 10, generator(0))
    distance = ((points[:, None] - centers) ** 2).sum(axis=2)
    assert (labels == distance.argmin(axis=1)).all()
    reference = KMeans(10, n_init=5, random_state=0).fit(points).inertia_
    assert distance.min(axis=1).sum() < 1.02 * reference
    assert np.bincount(labels, minlength=10).min() > 0


def test_kmeans_counts_weights_like_copies():
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    centers, labels = kmeans(points, np.array([3.0, 1.0, 1.0, 1.0]), 2, generator(0))
    assert sorted(centers[:, 0]) == pytest.approx([0.25, 10.5])
    assert labels[0] == labels[1] != labels[2]


@pytest.mark.parametrize("seed", range(10))
def test_anchors_do_not_depend_on_the_order_of_models_even_with_many_ties(seed):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(0, 2, size=(300, 9)).astype(float) / 10
    mass = np.full(300, 1 / 300)
    expected = anchors(vectors, mass, 12, generator(seed))
    for _ in range(5):
        chosen, weight = anchors(vectors[:, rng.permutation(9)], mass, 12, generator(seed))
        assert chosen.tolist() == expected[0].tolist()
        assert weight == pytest.approx(expected[1])


def test_fewer_distinct_items_than_k_are_topped_up_by_splitting_the_heaviest():
    vectors = np.array([[0.0]] * 6 + [[1.0]] * 3 + [[0.5]])
    chosen, weight = anchors(vectors, np.full(10, 0.1), 5, generator(0))
    assert len(set(chosen.tolist())) == 5
    by_value = pd.Series(weight).groupby(vectors[chosen, 0]).sum()
    assert by_value.to_dict() == pytest.approx({0.0: 0.6, 0.5: 0.1, 1.0: 0.3})


def test_top_up_can_take_every_item():
    chosen, weight = anchors(np.zeros((8, 3)), np.full(8, 1 / 8), 7, generator(0))
    assert len(set(chosen.tolist())) == 7
    assert weight.sum() == pytest.approx(1.0)


# --- fisher ----------------------------------------------------------------------------------


def test_linear_gaussian_greedy_is_top_k_by_signal_to_noise():
    evidence = make_task()
    fit = fit_items(evidence)
    assert fit.response_model == "linear_gaussian"
    information = (fit.parameters.slope / fit.parameters.residual_sd) ** 2
    information[fit.parameters.slope <= 0] = 0
    by_greedy = greedy(np.tile(information, (len(fit.models), 1)), 20)
    top = np.argsort(-information, kind="stable")[:20]
    assert by_greedy.tolist() == top.tolist()
    assert run("fisher", evidence, 20)["item_id"].tolist() == [f"i{i:05d}" for i in top]


def test_greedy_takes_the_best_next_item_and_keeps_its_guarantee():
    rng = np.random.default_rng(3)
    information = rng.random((6, 9)) ** 4

    def value(items: tuple[int, ...]) -> float:
        return float(np.log(1.0 + information[:, list(items)].sum(axis=1)).sum())

    chosen = greedy(information, 3).tolist()
    for size in range(3):
        rest = [i for i in range(9) if i not in chosen[:size]]
        assert chosen[size] == max(rest, key=lambda i: value((*chosen[:size], i)))
    best = max(value(s) for s in combinations(range(9), 3))
    assert value(tuple(chosen)) >= (1 - 1 / np.e) * best


def test_fisher_leaves_out_negative_discrimination():
    evidence = make_task(binary=True)
    outcomes = evidence.outcomes.copy()
    outcomes[:, :20] = (evidence.full_scores < np.median(evidence.full_scores))[:, None]
    flipped = dataclasses.replace(evidence, outcomes=outcomes)
    assert run("fisher", flipped, 50)["item_id"].min() >= "i00020"


def test_two_pl_fisher_spreads_over_difficulty_more_than_single_best_items():
    evidence = make_task(binary=True, n_items=400)
    fit = fit_items(evidence)
    chosen = choose("fisher", evidence, fit, 20, ("s",)).merge(fit.item_parameters, on="item_id")
    assert chosen["weight"].unique() == pytest.approx([1 / 20])
    assert chosen["slope"].median() > fit.item_parameters["slope"].median()


# --- strata ----------------------------------------------------------------------------------


def test_difficulty_strata_take_one_item_per_quantile():
    evidence = make_task()
    chosen = run("strat", evidence, 20)
    order = np.argsort(np.argsort(evidence.outcomes.mean(axis=0)))
    place = order[[int(i[1:]) for i in chosen["item_id"]]]
    assert (place // 10).tolist() == list(range(20))
    assert chosen["weight"].to_numpy() == pytest.approx(np.full(20, 0.05))


@pytest.mark.parametrize("method", ["strat", "anchorset"])
def test_label_strata_are_proportional_and_weights_restore_the_pool(method):
    evidence = make_task(task_type="PairClassification")
    items = evidence.items.assign(stratum=["1"] * 50 + ["0"] * 150)
    pairs = dataclasses.replace(evidence, items=items)
    chosen = run(method, pairs, 20).merge(items, on="item_id")
    assert chosen["stratum"].value_counts().to_dict() == {"0": 15, "1": 5}
    mass = chosen.groupby("stratum")["weight"].sum()
    assert mass.to_dict() == pytest.approx({"0": 0.75, "1": 0.25})


@pytest.mark.parametrize("method", ["strat", "anchorset"])
def test_a_balanced_pool_of_pairs_stays_balanced_and_its_weights_carry_the_prior(method):
    evidence = make_task(task_type="PairClassification")
    label = np.arange(200) % 2
    weight = np.where(label == 1, 0.1, 0.9) / 100
    items = evidence.items.assign(stratum=label.astype(str), pool_weight=weight)
    chosen = run(method, dataclasses.replace(evidence, items=items), 20).merge(items, on="item_id")
    assert chosen["stratum"].value_counts().to_dict() == {"0": 10, "1": 10}
    mass = chosen.groupby("stratum")["weight"].sum()
    assert mass.to_dict() == pytest.approx({"0": 0.9, "1": 0.1})


def test_sts_strata_are_five_gold_bins():
    evidence = make_task(task_type="STS")
    chosen = run("strat", evidence, 10).merge(evidence.items, on="item_id")
    assert np.minimum(chosen["gold"] // 1, 4).nunique() == 5


def test_sts_with_equal_gold_scores_still_selects():
    evidence = make_task(task_type="STS")
    flat = dataclasses.replace(evidence, items=evidence.items.assign(gold=3.0))
    assert len(run("strat", flat, 10)) == 10


@pytest.mark.parametrize("method", ["strat", "anchorset"])
def test_clustering_takes_few_labels_with_several_items_each(method):
    evidence = make_task(task_type="Clustering", labels=50)
    chosen = run(method, evidence, 20).merge(evidence.items, on="item_id")
    counts = chosen["stratum"].value_counts()
    assert 2 <= len(counts) <= 8  # labels have about 4 items each here
    assert counts.mean() >= 2.5


@pytest.mark.parametrize("method", ["strat", "anchorset"])
def test_set_metrics_give_each_chosen_cell_several_items(method):
    items = make_items(400, cells=16, labels=2)
    evidence = dataclasses.replace(make_task(task_type="STS", n_items=400), items=items)
    counts = run(method, evidence, 20).merge(items, on="item_id")["hf_subset"].value_counts()
    assert counts.min() >= 4


def test_anchorset_of_pairs_holds_both_labels():
    evidence = make_task(task_type="PairClassification")
    # All positives alike and few: plain anchors would pass over them.
    outcomes = evidence.outcomes.copy()
    outcomes[:, :4] = 0.5
    items = evidence.items.assign(stratum=["1"] * 4 + ["0"] * 196)
    rare = dataclasses.replace(evidence, outcomes=outcomes, items=items)
    for k in (2, 3, 5, 20):
        chosen = run("anchorset", rare, k).merge(items, on="item_id")
        assert set(chosen["stratum"]) == {"0", "1"}


def test_allocation_is_largest_remainder_with_a_floor_and_a_cap():
    assert allocate(np.array([0.5, 0.3, 0.2]), np.array([9, 9, 9]), 10).tolist() == [5, 3, 2]
    assert allocate(np.array([0.9, 0.05, 0.05]), np.array([99, 9, 9]), 4).tolist() == [2, 1, 1]
    assert allocate(np.array([0.9, 0.1]), np.array([2, 9]), 6).tolist() == [2, 4]
    assert allocate(np.array([0.6, 0.3, 0.1]), np.array([9, 9, 9]), 2).sum() == 2
    with pytest.raises(ValueError, match="cannot take 5 items from strata that hold 3"):
        allocate(np.array([1.0]), np.array([3]), 5)
    assert [affordable(50, k) for k in (1, 2, 20, 100)] == [1, 2, 5, 25]
