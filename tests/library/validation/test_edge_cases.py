"""Awkward zoos and tasks through the whole harness: every selector and estimator survives them.

Those of single functions stand beside their functions; these are the ones where fit, selection,
estimate and calibration meet.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.fits import predict_held_out
from support.zoo import make_models, make_task, mean_statistic, observed_task
from threadpoolctl import threadpool_limits

from mteblite.calibrations.registry import ESTIMATORS
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import fit_items
from mteblite.kmeans import kmeans
from mteblite.seeds import generator
from mteblite.selections.registry import SELECTORS
from mteblite.selections.token_budget import choose
from mteblite.task_types.scoring import set_statistic
from mteblite.validation.metrics import validation_metrics

VARIANTS = [
    *(f"{s}/mean/{s}" for s in SELECTORS),
    *(f"anchor/{e}/strat" for e in ESTIMATORS),
    "strat_difficulty/greg/strat_difficulty+blup",
    "fisher/gp/strat+crossfit",
]
FAMILIES = make_models(8, siblings=2)


def run(evidences, k=8, variants=VARIANTS, protocol="family_lomo", **options) -> pd.DataFrame:
    options = {"statistic": mean_statistic, "random_draws": 2, **options}
    return predict_held_out(
        evidences, variants, {e.task: k for e in evidences}, protocol, 0, **options
    )


def task(name="A", **changes) -> TaskEvidence:
    return make_task(name, families=FAMILIES, **{"n_items": 40, **changes})


def check(frame: pd.DataFrame, low: float = 0.0) -> None:
    assert frame["predicted"].notna().all()
    assert frame["predicted"].between(low, 1.0).all()


# --- outcomes --------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [False, True])
def test_a_model_that_gets_everything_right_or_wrong_and_items_that_all_do(binary):
    evidence = task(binary=binary)
    outcomes = evidence.outcomes.copy()
    outcomes[0], outcomes[1] = 1.0, 0.0
    outcomes[:, 3], outcomes[:, 4] = 1.0, 0.0
    check(
        run([dataclasses.replace(evidence, outcomes=outcomes, pool_scores=outcomes.mean(axis=1))])
    )


def test_all_outcomes_and_scores_equal_predict_the_common_score_and_have_no_tau():
    evidence = task()
    same = dataclasses.replace(
        evidence,
        outcomes=np.full(evidence.outcomes.shape, 0.5),
        full_scores=np.full(len(evidence.models), 0.4),
        pool_scores=np.full(len(evidence.models), 0.5),
    )
    frame = run([same])
    assert frame["predicted"].to_numpy() == pytest.approx(0.4)
    metrics = validation_metrics(frame, {"A": "Retrieval"})
    values = metrics[metrics["target"] == "macro"].pivot_table(
        index="variant", columns="metric", values="value", dropna=False
    )
    assert values[["kendall_tau", "kendall_tau_resolvable", "pearson"]].isna().all().all()
    assert values["mae"].to_numpy() == pytest.approx(0.0, abs=1e-9)


def test_identical_items_and_fewer_kinds_of_items_than_k():
    evidence = task()
    outcomes = evidence.outcomes[:, np.arange(40) % 3]
    check(run([dataclasses.replace(evidence, outcomes=outcomes)], k=12))


def test_an_item_missing_for_one_model_and_one_that_nobody_saw():
    evidence = task()
    outcomes = evidence.outcomes.copy()
    outcomes[2, 5] = np.nan
    outcomes[:, 6] = np.nan
    check(run([dataclasses.replace(evidence, outcomes=outcomes)]))


def test_negative_outcomes_are_kept_and_not_clipped_to_zero():
    evidence = task("A", task_type="Summarization")
    rng = np.random.default_rng(0)
    level = np.linspace(-0.6, -0.2, len(evidence.models))
    outcomes = np.clip(level[:, None] + 0.2 * rng.normal(size=evidence.outcomes.shape), -1, 1)
    negative = dataclasses.replace(
        evidence, outcomes=outcomes, full_scores=outcomes.mean(axis=1),
        pool_scores=outcomes.mean(axis=1),
    )  # fmt: skip
    frame = run([negative])
    check(frame, low=-1.0)
    assert (frame["predicted"] < 0.0).mean() > 0.95


# --- scores ----------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [np.nan, np.inf, -np.inf])
def test_models_without_a_finite_full_score_take_no_part(nothing):
    evidence = task()
    scores = evidence.full_scores.copy()
    scores[1] = nothing
    frame = run([dataclasses.replace(evidence, full_scores=scores)])
    assert evidence.models[1] not in set(frame["model"])
    keep = np.arange(len(scores)) != 1
    pd.testing.assert_frame_equal(frame, run([evidence.only_models(keep)]))


def test_a_model_with_a_full_score_but_no_outcomes_only_tells_how_tasks_are_related():
    evidence = task()
    outcomes = evidence.outcomes.copy()
    outcomes[4] = np.nan
    frame = run([dataclasses.replace(evidence, outcomes=outcomes)])
    assert evidence.models[4] not in set(frame["model"])
    without = run([evidence.only_models(np.arange(len(outcomes)) != 4)])
    blup = frame["variant"].str.endswith("+blup")
    columns = ["variant", "model", "task", "predicted"]
    pd.testing.assert_frame_equal(frame.loc[~blup, columns], without.loc[~blup, columns])
    # The covariance of full scores may use it, as it uses public models.
    assert (frame.loc[blup, "predicted"] != without.loc[blup, "predicted"]).any()


def test_tied_scores_within_a_family_of_five():
    families = {f"a{i}": "a" for i in range(5)} | {f"b{i}": f"b{i}" for i in range(6)}
    evidence = make_task(families=families, n_items=40)
    scores = np.where(np.array(evidence.families) == "a", 0.5, evidence.full_scores)
    frame = run([dataclasses.replace(evidence, full_scores=scores)])
    check(frame)
    assert (frame[frame["fold"] == "a"].groupby("variant").size() == 5).all()


def test_a_percentage_among_fractions_is_refused_by_the_contract_of_full_scores():
    import duckdb

    from mteblite_assets.reference_scores.assets import full_scores

    checks = full_scores.checks
    (rule,) = [c for c in checks if c.name == "scores_are_fractions"]
    with duckdb.connect() as con:
        con.execute("CREATE SCHEMA reference_scores")
        con.execute(
            "CREATE TABLE reference_scores.shared_full_scores AS SELECT * FROM (VALUES "
            "('a', 0.71), ('b', -0.2), ('c', 71.0), ('d', 'nan'::DOUBLE)) t(model, main_score)"
        )
        found = con.execute(rule.violations).fetchall()
    assert [row[0] for row in found] == ["c", "d"]


# --- sizes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 39, 40, 400])
def test_one_item_all_but_one_and_more_than_there_are(k):
    evidences = [task(), task("B", task_type="STS")]
    frame = run(evidences, k)
    check(frame, low=-1.0)
    if k >= 40:
        by_mean = frame[frame["variant"].isin([f"{s}/mean/{s}" for s in SELECTORS])]
        spread = by_mean.groupby(["task", "model"])["predicted"].agg(np.ptp)
        assert spread.max() < 1e-9


def test_fewer_items_than_labels():
    evidence = make_task(task_type="Clustering", families=FAMILIES, n_items=30, labels=200)
    assert evidence.items["stratum"].nunique() > 20
    for method in SELECTORS:
        chosen = choose(method, evidence, fit_items(evidence), 10, ("t",))
        assert chosen["item_id"].nunique() == 10
        assert (chosen["weight"] > 0).all()


def test_the_smallest_zoos():
    two = {"a0": "a", "b0": "b", "b1": "b"}
    frame = run([make_task(families=two, n_items=40)])
    # Without b one model is left, which teaches nothing; without a there are two.
    assert set(frame["fold"]) == {"a"}
    check(frame)
    with pytest.raises(ValueError, match="needs at least 2 families, got 1"):
        run([make_task(families={"a0": "a", "a1": "a"}, n_items=40)])


def test_macro_is_undefined_for_models_whose_fold_lacks_a_task():
    evidences = [task(), task("B")]
    only = np.isin(evidences[1].families, ["f00", "f01"])
    evidences[1] = evidences[1].only_models(only)
    frame = run(evidences, variants=["anchor/mean/strat"])
    metrics = validation_metrics(frame, {"A": "Retrieval", "B": "Retrieval"})
    counts = metrics[metrics["metric"] == "mae"].set_index("target")["n_models"]
    # f00 has two models here; without them a single one knows task B.
    assert counts["task:A"] == len(evidences[0].models)
    assert counts["macro"] == counts["task:B"] == 1


# --- set statistics --------------------------------------------------------------------------


def test_average_precision_without_a_positive_is_undefined_and_strata_prevent_it():
    evidence = observed_task("PairClassification")
    gold = evidence.items["gold"].to_numpy()
    negative = np.flatnonzero(gold == 0)[:10]
    rows = evidence.items.iloc[negative]
    seen = evidence.observations[0][negative]
    assert np.isnan(set_statistic("PairClassification", seen, rows, np.full(10, 0.1)))
    # One positive in 240 is in every selection that knows labels.
    rare = evidence.items.assign(gold=0.0, stratum="label0")
    rare.loc[7, ["gold", "stratum"]] = [1.0, "label1"]
    rare_task = dataclasses.replace(evidence, items=rare)
    for method in ("strat", "anchorset", "strat_difficulty"):
        for seed in range(5):
            chosen = choose(method, rare_task, fit_items(rare_task), 6, (seed,))
            assert "i00007" in set(chosen["item_id"]), method


def test_v_measure_with_one_label_tells_nothing_and_breaks_nothing():
    evidence = observed_task("Clustering")
    one = dataclasses.replace(evidence, items=evidence.items.assign(stratum="label0"))
    frame = run([one], k=12, variants=["anchor/mean/strat"], statistic=set_statistic)
    known = frame["predicted"].dropna()
    assert known.between(0.0, 1.0).all()
    # Whatever it is, it is the same for all models of a fold.
    assert frame.groupby("fold")["predicted"].nunique().max() <= 1


# --- order and precision ---------------------------------------------------------------------


def test_items_and_models_must_be_unique_and_in_the_order_of_their_code_points():
    evidence = task()
    for ids in (["i1"] * 40, [f"{i}" for i in range(40)]):  # "10" sorts before "9"
        with pytest.raises(ValueError, match="items and models must be sorted and unique"):
            dataclasses.replace(evidence, items=evidence.items.assign(item_id=ids))
    # Upper case, digits and accents sort by code point on every machine, never by locale.
    names = sorted(["Z", "a", "é", "ß", "10", "9", "A", "ñ", "z", "Ω"])
    assert names == ["10", "9", "A", "Z", "a", "z", "ß", "é", "ñ", "Ω"]
    small = task(n_items=10)
    dataclasses.replace(small, items=small.items.assign(item_id=names))


@pytest.mark.parametrize("method", SELECTORS)
def test_outcomes_stored_in_single_precision_select_the_same_items(method):
    evidence = task(n_items=120)
    # Multiples of a tenth are no binary fractions: in single precision they differ in digit 8.
    tenths = dataclasses.replace(evidence, outcomes=np.round(evidence.outcomes, 1))
    single = dataclasses.replace(
        tenths, outcomes=tenths.outcomes.astype(np.float32).astype(np.float64)
    )
    first, second = (choose(method, e, fit_items(e), 15, ("t",)) for e in (tenths, single))
    assert first["item_id"].tolist() == second["item_id"].tolist()
    assert first["weight"].to_numpy() == pytest.approx(second["weight"].to_numpy(), abs=1e-6)


def test_kmeans_does_not_depend_on_the_threads_of_blas():
    rng = np.random.default_rng(0)
    points = np.round(rng.random((700, 46)), 1)
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            found.append(kmeans(points, np.full(700, 1 / 700), 60, generator("t")))
    assert (found[0][1] == found[1][1]).all()
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-12)
