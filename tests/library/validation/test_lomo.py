"""Held-out predictions: nothing leaks, nothing depends on order, anchors beat random items."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.fits import fit_task, predict_held_out, predicted_by, refits
from support.zoo import make_models, make_task, mean_statistic

from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.validation.folds import fold_members, make_folds
from mteblite.validation.metrics import validation_metrics
from mteblite.validation.refit import TaskRefits
from mteblite.validation.variants import SEED_VARIANTS, parse_variant, suite_variants

ALL = [*suite_variants(), Variant("random", "mean", "random")]


def suite(**changes) -> list[TaskEvidence]:
    shared = {"n_items": 80, **changes}
    return [
        make_task("Graded", **shared),
        make_task("Binary", "Classification", binary=True, **shared),
        make_task("Pairs", "PairClassification", **shared),
        make_task("Similar", "STS", **shared),
        make_task("Groups", "Clustering", labels=6, **shared),
    ]


def run(evidences, variants=ALL, protocol="family_lomo", k=10, **options) -> pd.DataFrame:
    options = {"statistic": mean_statistic, "random_draws": 3, **options}
    return predict_held_out(
        evidences, variants, {e.task: k for e in evidences}, protocol, 0, **options
    )


def perturbed(evidence: TaskEvidence, rows: np.ndarray) -> TaskEvidence:
    """Other outcomes, full scores and observations for the models in `rows`."""
    rng = np.random.default_rng(9)
    outcomes, scores = evidence.outcomes.copy(), evidence.full_scores.copy()
    outcomes[rows] = rng.integers(0, 2, size=outcomes[rows].shape)
    scores[rows] = rng.random(rows.sum())
    pool = np.where(rows, outcomes.mean(axis=1), evidence.pool_scores)
    seen = evidence.observations
    return dataclasses.replace(
        evidence,
        outcomes=outcomes,
        full_scores=scores,
        pool_scores=pool,
        observations=None if seen is None else tuple(o[:, None] for o in outcomes),
    )


@pytest.mark.parametrize("evidence", suite(), ids=lambda e: e.task)
def test_nothing_of_a_fold_depends_on_the_held_out_family(evidence):
    held_out = np.array(evidence.families) == "f00"
    assert held_out.sum() == 3
    changed = perturbed(evidence, held_out)
    made = [
        refits(e, 10, 0, mean_statistic, random_draws=3).predict_many(~held_out, ALL)
        for e in (evidence, changed)
    ]
    assert set(made[0]) == {str(v) for v in ALL}
    for name, before in made[0].items():
        # Training models' predictions show the selection, weights, fit and calibration.
        np.testing.assert_array_equal(before[:, ~held_out], made[1][name][:, ~held_out])
        assert not np.allclose(before[:, held_out], made[1][name][:, held_out])


@pytest.mark.parametrize(
    "variant", ["anchor/gp/anchorset", "fisher/pirt/strat", "strat/mean/strat"]
)
@pytest.mark.parametrize("evidence", suite(), ids=lambda e: e.task)
def test_a_fold_equals_the_release_made_without_the_family(evidence, variant):
    held_out = np.array(evidence.families) == "f03"
    fitted = fit_task(
        evidence.only_models(~held_out), Variant.parse(variant), 10, (0,), statistic=mean_statistic
    )
    rows = run([evidence], [variant])
    rows = rows[rows["fold"] == "f03"].set_index("model")["predicted"]
    assert len(rows) == held_out.sum()
    places = [int(i[1:]) for i in fitted.selection["item_id"]]
    for place in np.flatnonzero(held_out):
        per_item = fitted.kind == "per_item"
        seen = evidence.outcomes[place] if per_item else evidence.observations[place]
        assert rows[evidence.models[place]] == pytest.approx(
            predicted_by(fitted, seen[places]), abs=1e-12
        )


@pytest.mark.parametrize("protocol", ["family_lomo", "model_lomo"])
def test_every_model_is_predicted_once_per_variant_and_task(protocol):
    evidences = suite()
    frame = run(evidences, protocol=protocol)
    keys = ["protocol", "variant", "fold", "model", "task"]
    assert not frame.duplicated(keys).any()
    assert not frame.duplicated(["variant", "model", "task"]).any()
    n_models = len(evidences[0].models)
    assert (frame.groupby(["variant", "task"]).size() == n_models).all()
    drawn = ("random/mean", "random/mean+none", "same_token/mean")
    names = {str(v) for v in ALL} | {f"{name}#0{d}" for name in drawn for d in (1, 2)}
    assert set(frame["variant"]) == names
    assert frame["predicted"].between(-1, 1).all()
    actual = frame.drop_duplicates(["model", "task"]).set_index(["task", "model"])["actual"]
    for e in evidences:
        assert actual[e.task].reindex(list(e.models)).to_numpy() == pytest.approx(e.full_scores)


def test_order_of_tasks_and_variants_and_shared_work_change_nothing():
    evidences = suite()
    frame = run(evidences)
    pd.testing.assert_frame_equal(frame, run(evidences[::-1], ALL[::-1]))
    shared: dict[str, TaskRefits] = {}
    run(evidences, protocol="model_lomo", refits=shared)
    pd.testing.assert_frame_equal(frame, run(evidences, refits=shared))


def test_baselines():
    evidences = suite()
    frame = run(evidences, ["pool/mean+none", "random/mean+none", "pool/mean"])
    raw = frame[frame["variant"] == "pool/mean+none"].set_index(["task", "model"])["predicted"]
    for e in evidences:
        assert raw[e.task].reindex(list(e.models)).to_numpy() == pytest.approx(e.pool_scores)
    mae = frame.assign(error=(frame["predicted"] - frame["actual"]).abs())
    mae = mae.groupby("variant")["error"].mean()
    assert mae["pool/mean"] < mae["random/mean+none"]


def test_anchors_beat_random_items_on_held_out_families():
    families = make_models(18, siblings=3)
    evidences = [
        make_task(f"T{i}", families=families, n_items=400, binary=i % 2 == 1) for i in range(6)
    ]
    names = ["anchor/mean/strat", "anchor/mean/strat+none", "random/mean", "random/mean+none"]
    frame = run(evidences, names, k=20, random_draws=50)
    metrics = validation_metrics(frame, {e.task: e.task_type for e in evidences})
    tasks = metrics[metrics["target"].str.startswith("task:") & (metrics["metric"] == "mae")]
    mae = tasks.groupby("variant")["value"].mean()
    assert mae["anchor/mean/strat+none"] < 0.85 * mae["random/mean+none"]
    assert mae["anchor/mean/strat"] < mae["random/mean"]


def test_models_missing_on_a_task_have_no_row_there():
    evidences = suite()
    first = evidences[0]
    scores = first.full_scores.copy()
    scores[2] = np.nan
    evidences[0] = dataclasses.replace(first, full_scores=scores)
    frame = run(evidences, ["anchor/mean/strat"])
    missing = frame[(frame["task"] == "Graded") & (frame["model"] == first.models[2])]
    assert missing.empty
    assert first.models[2] in set(frame["model"])


def test_a_task_that_only_the_held_out_family_has_is_absent_from_its_fold():
    evidence = make_task("Rare", n_items=80)
    only = evidence.only_models(np.isin(evidence.families, ["f00", "f01"]))
    assert only.families == ("f00", "f00", "f00", "f01")
    frame = run([only, make_task("Graded", n_items=80)], ["anchor/mean/strat"])
    rare = frame[frame["task"] == "Rare"]
    # Without f00 one model is left to train on: no prediction. Without f01 there are three.
    assert rare["fold"].unique().tolist() == ["f01"]
    assert rare["n_train"].tolist() == [3]


def test_two_families_work_and_one_is_an_error():
    families = {"a0": "a", "a1": "a", "a2": "a", "b0": "b", "b1": "b"}
    evidence = make_task(families=families, n_items=80)
    assert set(run([evidence], ["anchor/gp/strat"])["fold"]) == {"a", "b"}
    alone = evidence.only_models(np.array(evidence.families) == "a")
    with pytest.raises(ValueError, match="needs at least 2 families, got 1"):
        run([alone], ["anchor/gp/strat"])
    assert len(run([alone], ["anchor/gp/strat"], "model_lomo")) == 3


def test_k_beyond_the_pool_predicts_from_the_whole_pool():
    evidence = make_task(n_items=30)
    frame = run([evidence], ["anchor/mean/strat", "pool/mean"], k=99)
    by_variant = frame.pivot(index="model", columns="variant", values="predicted")
    assert by_variant["anchor/mean/strat"].to_numpy() == pytest.approx(
        by_variant["pool/mean"].to_numpy()
    )


def test_progress_and_argument_errors():
    calls: list[tuple[int, int]] = []
    evidence = make_task("Graded", n_items=40)
    run([evidence], ["random/mean"], progress=lambda *call: calls.append(call))
    assert calls == [(1, 1)]
    with pytest.raises(ValueError, match="'Graded' is given twice"):
        run([evidence, evidence], ["random/mean"])
    with pytest.raises(ValueError, match="'Graded' has no K"):
        predict_held_out([evidence], ["random/mean"], {}, "family_lomo", 0)
    with pytest.raises(ValueError, match="got 0 tasks"):
        run([])
    with pytest.raises(ValueError, match="protocol 'loo' is unknown"):
        make_folds("loo", {"a": "b"})
    moved = dataclasses.replace(make_task("Other", n_items=40), families=("x",) * 20)
    with pytest.raises(ValueError, match="a model has one family"):
        run([evidence, moved], ["random/mean"])


def test_fold_members_hold_out_whole_families():
    members = fold_members(suite(), "family_lomo")
    for _, fold in members.groupby("fold"):
        assert not set(fold.loc[fold["held_out"], "family"]) & set(
            fold.loc[~fold["held_out"], "family"]
        )
    assert members.groupby("model")["held_out"].sum().eq(1).all()


def test_variant_names():
    assert len(SEED_VARIANTS) == 12
    for variant in suite_variants():
        assert parse_variant(str(variant)) == variant
    with pytest.raises(ValueError, match="has 2 parts"):
        parse_variant("best/mean")


def test_threads_change_nothing_and_failures_come_through():
    evidences = suite()
    frames = [run(evidences, workers=workers) for workers in (1, 3)]
    pd.testing.assert_frame_equal(*frames)
    with pytest.raises(ValueError, match="at least 1 worker, got 0"):
        run(evidences, workers=0)

    def broken(*arguments):
        raise ZeroDivisionError("statistic")

    with pytest.raises(ZeroDivisionError, match="statistic"):
        run(evidences, ["strat/mean/strat"], statistic=broken, workers=2)
