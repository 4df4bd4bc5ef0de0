"""Baselines that spend nothing on a task, or the same tokens at random, against direct sums."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.fits import predict_held_out, refits
from support.zoo import make_models, make_task, mean_statistic

from mteblite.calibrations.blup import MAX_DEVIATION, Blup, JointData
from mteblite.calibrations.gaussian import condition
from mteblite.calibrations.linear import fit_calibration
from mteblite.calibrations.task_covariance import TaskCovariance
from mteblite.calibrations.variant import Variant
from mteblite.selections.item_costs import item_costs
from mteblite.task_types.registry import find_type
from mteblite.validation.cross_task import predict_from_others
from mteblite.validation.same_token import rounded_budget, same_token_draws
from mteblite.validation.variants import Baseline, parse_variant, suite_variants

FAMILIES = make_models(12, siblings=2)


def suite():
    return [
        make_task("A", families=FAMILIES, n_items=80),
        make_task("B", "Classification", families=FAMILIES, n_items=80, binary=True),
        make_task("C", "STS", families=FAMILIES, n_items=80),
        make_task("D", "Reranking", families=FAMILIES, n_items=80),
    ]


def run(evidences, variants, protocol="family_lomo", **options):
    return predict_held_out(
        evidences, variants, {e.task: 12 for e in evidences}, protocol, 0,
        statistic=mean_statistic, random_draws=3, **options,
    )  # fmt: skip


# --- same-token random -----------------------------------------------------------------------


def test_draws_spend_the_budget_and_no_more():
    costs = np.random.default_rng(0).integers(1, 60, size=200).astype(float)
    for budget in (300.0, 1000.0, float(costs.sum())):
        draws = same_token_draws(costs, budget, ("t",), 40)
        for chosen in draws:
            assert len(set(chosen.tolist())) == len(chosen)
            spent = costs[chosen].sum()
            assert spent <= budget + 1e-6
            assert spent > budget - costs.max()
    assert all(len(d) == 200 for d in draws)
    few = same_token_draws(costs, 0.5, ("t",), 3)
    assert [len(d) for d in few] == [1, 1, 1]
    with pytest.raises(ValueError, match="empty pool"):
        same_token_draws(np.array([]), 1.0, ("t",), 1)


def test_equal_costs_pay_for_exactly_k_items_and_every_item_is_as_likely():
    draws = same_token_draws(np.full(30, 0.1), 0.1 * 7, ("t",), 3000)
    assert {len(d) for d in draws} == {7}
    share = np.bincount(np.concatenate(draws), minlength=30) / 3000
    # Binomial: five standard errors around 7 / 30.
    assert np.abs(share - 7 / 30).max() < 5 * np.sqrt(7 / 30 * 23 / 30 / 3000)


def test_long_items_are_drawn_as_often_as_the_budget_allows_not_skipped():
    """Stopping at the first item that is not paid, not filling up with short ones."""
    costs = np.where(np.arange(40) < 20, 1.0, 9.0)
    draws = same_token_draws(costs, 100.0, ("t",), 4000)
    share = np.bincount(np.concatenate(draws), minlength=40) / 4000
    assert share[20:].mean() > 0.9 * share[:20].mean()


@pytest.mark.parametrize("name", ["A", "C"])
def test_predictions_are_the_calibrated_mean_of_random_items_of_equal_cost(name):
    (evidence,) = [e for e in suite() if e.task == name]
    costs = np.random.default_rng(1).integers(5, 200, size=80).astype(float)
    train = np.array(evidence.families) != "f03"
    compared = Variant("fisher", "mean", "strat")
    task = refits(
        evidence, 12, 0, mean_statistic, random_draws=4, token_costs=costs, compared=compared
    )
    found = task.predict_many(train, [Baseline("same_token")])["same_token/mean"]
    chosen = task.fits.training(train).select(compared.selection(evidence.kind))[1]
    budget = rounded_budget(costs[chosen].sum())
    assert budget == pytest.approx(costs[chosen].sum(), rel=0.0254)
    assert rounded_budget(budget) == budget
    draws = same_token_draws(costs, budget, (0, name, "same-token baseline"), 4)
    for row, places in zip(found, draws, strict=True):
        means = evidence.outcomes[:, places].mean(axis=1)
        line = fit_calibration("linear", means[train], evidence.full_scores[train])
        expected = np.clip(line.apply(means), -1 if name == "C" else 0, 1)
        np.testing.assert_allclose(row, expected, atol=1e-12)


def test_without_token_costs_texts_count_by_type():
    assert item_costs("Retrieval", 3).tolist() == [32.0, 32.0, 32.0]
    frame = run(suite(), ["same_token/mean+none", "random/mean+none"])
    assert set(frame["variant"].str.partition("#")[0]) == {
        "same_token/mean+none", "random/mean+none",
    }  # fmt: skip
    assert frame["predicted"].notna().all()


def test_costs_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="one positive number for each of 3 items"):
        item_costs("STS", 3, np.array([1.0, 0.0, 2.0]))
    with pytest.raises(ValueError, match=r"got shape \(2,\)"):
        item_costs("STS", 3, np.ones(2))
    with pytest.raises(ValueError, match="task type 'Image' is not supported"):
        item_costs("Image", 3)


def test_text_counts_give_those_of_the_published_selections():
    """41 tasks of MTEB(eng, v2): texts of K = 20 and 100 on the dataset card of MTEB-lite."""
    tasks = {"Retrieval": 8, "Reranking": 2, "Classification": 8, "Clustering": 8,
             "PairClassification": 3, "STS": 9}  # fmt: skip
    fixed = 13_900 + 10 * 1000
    for k, texts in ((20, 33_263), (100, 64_455)):
        counted = sum(n * k * find_type(t).texts_per_item for t, n in tasks.items())
        # Two retrieval tasks hold 50 and 49 queries, summarization 100 documents.
        counted += find_type("Retrieval").texts_per_item * (min(k, 50) + min(k, 49))
        counted += find_type("Summarization").texts_per_item * k
        assert fixed + counted == pytest.approx(texts, rel=0.03)


# --- cross-task only -------------------------------------------------------------------------


def random_blup(n_tasks, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_tasks, n_tasks))
    covariance = root @ root.T / n_tasks + 0.2 * np.eye(n_tasks)
    return Blup(TaskCovariance(rng.random(n_tasks), covariance, 9.0), rng.random(n_tasks) + 0.01)


def test_leaving_each_out_equals_conditioning_on_the_others():
    blup = random_blup(7)
    rng = np.random.default_rng(3)
    estimates = blup.prior.mean + rng.normal(size=(5, 7))
    estimates[1, 2] = estimates[2, :3] = np.nan
    estimates[3] = np.nan
    estimates[4, 0] = 60.0  # beyond the cap
    found = predict_from_others(blup, estimates)
    for row, z in enumerate(estimates):
        for task in range(7):
            others = z.copy()
            others[task] = np.nan
            mean, covariance = condition(
                others, blup.noise, blup.prior.mean, blup.prior.covariance, cap=MAX_DEVIATION
            )
            assert found.mean[row, task] == pytest.approx(mean[task], abs=1e-10)
            assert found.covariance[row, task, task] == pytest.approx(covariance[task, task])
    assert np.isnan(found.covariance[0, 0, 1])


def test_a_task_with_unknown_noise_is_predicted_and_does_not_speak():
    blup = random_blup(4)
    noise = blup.noise.copy()
    noise[1] = np.nan
    estimates = np.random.default_rng(0).random((2, 4))
    found = predict_from_others(Blup(blup.prior, noise), estimates)
    assert np.isfinite(found.mean).all()
    estimates[:, 1] = 9.0
    np.testing.assert_array_equal(
        found.mean, predict_from_others(Blup(blup.prior, noise), estimates).mean
    )


def test_one_task_alone_is_predicted_by_the_mean_of_the_training_families():
    evidence = suite()[0]
    frame = run([evidence], ["cross_task/blup"]).set_index("model")["predicted"]
    by_family = {
        f: evidence.full_scores[np.array(evidence.families) == f].mean()
        for f in set(evidence.families)
    }
    for model, family in zip(evidence.models, evidence.families, strict=True):
        others = [v for f, v in by_family.items() if f != family]
        assert frame[model] == pytest.approx(np.mean(others))


def test_folds_predict_each_task_from_the_pools_of_the_others():
    evidences = suite()
    frame = run(evidences, ["cross_task/blup"]).set_index(["model", "task"])["predicted"]
    families = np.array(evidences[0].families)
    held_out = families == "f06"
    scores = np.column_stack([e.full_scores for e in evidences])
    pools = np.column_stack([e.pool_scores for e in evidences])
    moved = pools + (scores - pools)[~held_out].mean(axis=0)
    data = JointData(
        moved[~held_out], scores[~held_out], tuple(families[~held_out]),
        np.empty((0, 4)), (),
    )  # fmt: skip
    blup = Blup.fit(data)
    expected = predict_from_others(blup, moved[held_out]).mean
    for place, model in enumerate(np.flatnonzero(held_out)):
        for task, evidence in enumerate(evidences):
            others = moved[model].copy()
            others[task] = np.nan
            direct = condition(others, blup.noise, blup.prior.mean, blup.prior.covariance)[0][task]
            assert expected[place, task] == pytest.approx(direct)
            low = -1.0 if evidence.task == "C" else 0.0
            predicted = frame[evidence.models[model], evidence.task]
            assert predicted == pytest.approx(np.clip(direct, low, 1.0))


def test_a_models_own_pool_of_the_task_plays_no_part():
    evidences = suite()
    rows = np.array(evidences[0].families) == "f00"
    changed = [
        dataclasses.replace(
            e, pool_scores=np.where(rows & (e.task == "A"), 0.9, e.pool_scores)
        )
        for e in evidences
    ]  # fmt: skip
    before, after = (run(s, ["cross_task/blup"]) for s in (evidences, changed))
    own = (before["fold"] == "f00") & (before["task"] == "A")
    np.testing.assert_allclose(before.loc[own, "predicted"], after.loc[own, "predicted"])
    other = (before["fold"] == "f00") & (before["task"] == "B")
    assert (before.loc[other, "predicted"] != after.loc[other, "predicted"]).all()


def test_names_are_read_as_they_are_written_and_suites_compare_both():
    for name in ("same_token/mean", "same_token/mean+none", "cross_task/blup"):
        assert str(parse_variant(name)) == name
        assert isinstance(parse_variant(name), Baseline)
    assert {"same_token/mean", "cross_task/blup"} <= {str(v) for v in suite_variants()}
    with pytest.raises(ValueError, match="'cross_task/blup' takes no calibration, got 'none'"):
        parse_variant("cross_task/blup+none")
    with pytest.raises(ValueError, match="variant 'cross_task/mean' has 2 parts"):
        parse_variant("cross_task/mean")
