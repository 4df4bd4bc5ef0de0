"""Nested and frontier protocols, joint and cross-fitted calibrations: no leak, right choices."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.fits import predict_held_out, refits
from support.zoo import make_models, make_task, mean_statistic

from mteblite.calibrations.levels import ALL_CALIBRATIONS, JOINT
from mteblite.calibrations.registry import ESTIMATORS
from mteblite.calibrations.variant import Variant
from mteblite.selections.registry import SELECTORS
from mteblite.validation.folds import (
    Fold,
    family_by_model,
    fold_members,
    frontier_folds,
    make_folds,
    mean_scores,
)
from mteblite.validation.joint_folds import JointFolds, PublicScores
from mteblite.validation.lomo import Settings
from mteblite.validation.nested import predict_nested

FAMILIES = make_models(14, siblings=2)
EVERY = [
    *(f"anchor/{e}/strat" for e in ESTIMATORS),
    *(f"{s}/mean/{s}" for s in SELECTORS),
    *(f"strat_difficulty/greg/strat+{c}" for c in ALL_CALIBRATIONS),
    "anchor/switch/anchorset+blup",
]


def suite():
    return [
        make_task("A", families=FAMILIES, n_items=60),
        make_task("B", "Classification", families=FAMILIES, n_items=60, binary=True),
        make_task("C", "STS", families=FAMILIES, n_items=60),
    ]


def run(evidences, variants, protocol="family_lomo", **options):
    return predict_held_out(
        evidences, variants, {e.task: 12 for e in evidences}, protocol, 0,
        statistic=mean_statistic, random_draws=2, **options,
    )  # fmt: skip


def changed(evidence, family):
    """Other outcomes and full scores for one family."""
    rows = np.array(evidence.families) == family
    rng = np.random.default_rng(5)
    outcomes, scores = evidence.outcomes.copy(), evidence.full_scores.copy()
    outcomes[rows] = rng.integers(0, 2, size=outcomes[rows].shape)
    scores[rows] = rng.random(rows.sum())
    seen = evidence.observations
    return dataclasses.replace(
        evidence, outcomes=outcomes, full_scores=scores,
        observations=None if seen is None else tuple(o[:, None] for o in outcomes),
    )  # fmt: skip


def test_no_prediction_depends_on_what_the_held_out_family_scored():
    """For every variant: other full scores of a family leave its own predictions as they are."""
    evidences = suite()
    public = PublicScores(
        pd.DataFrame(
            {
                "model": ["p", "f00-m0x"],
                "family": ["q", "f00"],
                "A": [0.4, 0.5],
                "B": [0.5, 0.4],
                "C": [0.3, 0.2],
            }
        )
    )
    shifted = [
        dataclasses.replace(
            e, full_scores=np.where(np.array(e.families) == "f00", 0.9, e.full_scores)
        )
        for e in evidences
    ]
    before, after = (run(s, EVERY, public=public) for s in (evidences, shifted))
    for frame in (before, after):
        assert set(frame["variant"]) == {v.removesuffix("+linear") for v in EVERY}
    own = before["fold"] == "f00"
    np.testing.assert_array_equal(before.loc[own, "predicted"], after.loc[own, "predicted"])
    others = (before.loc[~own, "predicted"] != after.loc[~own, "predicted"]).to_numpy()
    assert others.mean() > 0.5


def test_nothing_that_a_fold_teaches_depends_on_the_held_out_family():
    """Other outcomes, too: what training models are estimated at shows fit, items and lines."""
    for evidence in suite():
        held_out = np.array(evidence.families) == "f00"
        choices = [Variant.parse(v) for v in EVERY]
        made = []
        for version in (evidence, changed(evidence, "f00")):
            task = refits(version, 12, 0, mean_statistic)
            single = task.predict_many(~held_out, choices)
            started = [task.start(~held_out, c) for c in choices if c.calibration in JOINT]
            made.append([*(v[0] for v in single.values()), *(x for s in started for x in s)])
        for before, after in zip(*made, strict=True):
            np.testing.assert_array_equal(before[~held_out], after[~held_out])


@pytest.mark.parametrize("protocol", ["family_lomo", "frontier"])
def test_every_variant_predicts_every_held_out_model_once(protocol):
    evidences = suite()
    frame = run(evidences, EVERY, protocol)
    assert not frame.duplicated(["variant", "model", "task"]).any()
    assert frame["predicted"].notna().all()
    assert frame.groupby(["variant", "task"]).size().nunique() == 1


def test_public_scores_of_a_held_out_family_are_left_out():
    table = pd.DataFrame(
        {"model": ["a", "b", "c"], "family": ["f", "g", "h"], "A": [0.1, 0.2, 0.3],
         "B": [0.1, np.nan, 0.3]}
    )  # fmt: skip
    scores, families = PublicScores(table).without(["A", "B", "C"], {"c"}, {"g"})
    assert families == ("f",)
    assert np.isnan(scores[0, 2])
    assert PublicScores(table).without(["A", "B"], set(), set())[1] == ("f", "h")


def test_blup_helps_when_estimates_are_noisy():
    families = make_models(24, siblings=2)
    evidences = [make_task(f"T{i}", families=families, n_items=200, binary=True) for i in range(6)]
    frame = run(evidences, ["random/mean/random+none", "random/mean/random+blup"])
    error = (frame["predicted"] - frame["actual"]).abs().groupby(frame["variant"]).mean()
    assert error["random/mean/random+blup"] < 0.8 * error["random/mean/random+none"]


def test_a_model_without_a_task_has_no_row_there_but_joins_the_others():
    evidences = suite()
    kept = np.arange(len(evidences[0].models)) != 3
    evidences[0] = evidences[0].only_models(kept)
    frame = run(evidences, ["anchor/mean/strat+blup"])
    missing = suite()[0].models[3]
    assert set(frame.loc[frame["model"] == missing, "task"]) == {"B", "C"}


# --- frontier --------------------------------------------------------------------------------


def test_the_frontier_trains_low_and_asks_high():
    families = {f"m{i}": f"f{i:02d}" for i in range(10)}
    scores = {f"m{i}": float(i) for i in range(10)}
    (fold,) = frontier_folds(families, scores)
    assert fold.held_out == {"m8", "m9"}
    assert fold.excluded == {"m6", "m7"}
    assert fold.trains("m5")
    with pytest.raises(ValueError, match="needs at least 5 families, got 2"):
        make_folds("frontier", {"a": "f", "b": "g"}, {})
    members = fold_members(suite(), "frontier")
    means = mean_scores(suite())
    low = [means[m] for m in members.loc[~members["held_out"], "model"]]
    high = [means[m] for m in members.loc[members["held_out"], "model"]]
    assert max(low) < max(high)
    assert np.mean(low) < np.mean(high) - 1


def test_the_frontier_hides_public_models_above_all_training_models():
    """Above all of them on the tasks that it has; above them on one task only does not count."""
    evidences, joint = suite(), ["strat/mean/strat+blup"]
    means = mean_scores(evidences)
    (fold,) = make_folds("frontier", family_by_model(evidences), means)
    rows = []
    for model in sorted(m for m in means if fold.trains(m))[:8]:
        scores = {e.task: e.full_scores[e.models.index(model)] for e in evidences}
        rows.append({"model": f"like {model}", "family": f"p{len(rows)}", **scores})
    below = [*rows, {"model": "odd", "family": "odd", "A": 0.99, "B": 0.01, "C": 0.01}]
    above = [
        {"model": "whole", "family": "whole", "A": 0.99, "B": 0.98, "C": 0.97},
        {"model": "part", "family": "part", "A": 0.99, "C": 0.99},
    ]

    def predicted(protocol, table):
        frame = run(evidences, joint, protocol, public=PublicScores(pd.DataFrame(table)))
        return frame["predicted"].to_numpy()

    frontier = predicted("frontier", below)
    np.testing.assert_array_equal(predicted("frontier", below + above), frontier)
    assert not np.allclose(predicted("frontier", rows), frontier)
    for model in above:
        assert not np.allclose(
            predicted("family_lomo", [*below, model]), predicted("family_lomo", below)
        )


# --- nested ----------------------------------------------------------------------------------

CANDIDATES = ["strat_difficulty/mean/strat+none", "fisher/mean/strat+none", "anchor/gp/strat"]


def nested(evidences, variants, **options):
    settings = Settings({e.task: 12 for e in evidences}, 0, statistic=mean_statistic)
    return predict_nested(evidences, variants, settings, **options)


def test_nested_predictions_are_those_of_the_chosen_variant():
    evidences = suite()
    frame, chosen = nested(evidences, CANDIDATES)
    assert set(frame["variant"]) == {"chosen"}
    assert set(frame["protocol"]) == {"nested_family_lomo"}
    assert set(chosen["variant"]) <= set(CANDIDATES)
    assert (chosen["inner_mae"] <= chosen["runner_up_mae"]).all()
    plain = run(evidences, CANDIDATES).set_index(["variant", "model", "task"])["predicted"]
    by_fold = chosen.set_index("fold")["variant"]
    for row in frame.itertuples():
        assert row.predicted == plain[by_fold[row.fold], row.model, row.task]


@pytest.mark.parametrize("families", [3, 4])
def test_nested_choice_with_too_few_families_for_inner_folds_takes_the_first_variant(families):
    few = make_models(families)
    evidences = [make_task(name, families=few, n_items=30) for name in "AB"]
    settings = Settings({"A": 8, "B": 8}, 0, statistic=mean_statistic)
    names = ["strat/mean/strat", "anchor/mean/strat"]
    frame, chosen = predict_nested(evidences, names, settings, name="nested")
    assert set(frame["task"]) == {"A", "B"}
    assert len(chosen) == families
    if families == 3:  # two training models of two families: none can be held out from the other
        assert set(chosen["variant"]) == {"strat/mean/strat"}


def test_nested_choice_takes_any_name_of_a_family():
    evidences = suite()
    barred = [
        dataclasses.replace(e, families=tuple(f.replace("f0", "f0|") for f in e.families))
        for e in evidences
    ]
    frame, chosen = nested(barred, CANDIDATES)
    assert sorted(chosen["fold"]) == sorted({f for e in barred for f in e.families})
    assert set(frame["model"]) == {m for e in barred for m in e.models}
    assert chosen["inner_mae"].notna().all()


def test_nested_choice_does_not_see_the_held_out_family():
    evidences = suite()
    _, before = nested(evidences, CANDIDATES)
    _, after = nested([changed(e, "f03") for e in evidences], CANDIDATES)
    first, second = (t.set_index("fold").loc["f03"] for t in (before, after))
    pd.testing.assert_series_equal(first, second)


def test_a_hopeless_variant_is_never_chosen_and_ties_go_to_the_first():
    evidences = suite()
    _, chosen = nested(evidences, ["fisher/mean/strat+none", "anchor/gp/strat"])
    assert (chosen["variant"] == "anchor/gp/strat").mean() > 0.8
    _, tied = nested(evidences, ["anchor/gp/strat", "anchor/gp/strat+linear"])
    assert set(tied["variant"]) == {"anchor/gp/strat"}


def test_patience_takes_the_first_that_is_not_clearly_worse():
    evidences = suite()
    close = ["anchor/gp/strat", "anchor/mean/strat", "anchor/pirt/strat"]
    _, least = nested(evidences, close)
    _, patient = nested(evidences, close, patience=10.0)
    assert set(patient["variant"]) == {"anchor/gp/strat"}
    assert (patient["inner_mae"] >= least["inner_mae"] - 1e-12).all()
    # Patience does not excuse what is clearly worse.
    _, clear = nested(evidences, ["fisher/mean/strat+none", "anchor/gp/strat"], patience=1.0)
    assert (clear["variant"] == "anchor/gp/strat").mean() > 0.6


def test_a_model_without_a_score_in_a_folds_tasks_takes_no_weight_there():
    """With f00 held out, one model knows B: the fold has no B, and who knows B alone no say."""
    a, b = suite()[:2]
    alone = "f01-m0"
    few = np.array([m in ("f00-m0", alone) for m in b.models])
    evidences = [a.only_models(np.array([m != alone for m in a.models])), b.only_models(few)]
    variant = Variant.parse("anchor/mean/strat+blup")
    joint = JointFolds(evidences, [variant])
    folds = [Fold(f, frozenset(m for m in FAMILIES if m.startswith(f))) for f in ("f00", "f02")]
    for evidence in evidences:
        for fold in folds:
            joint.add(refits(evidence, 12, 0, mean_statistic), fold, 2)
    found = {fold.name: joint.training(fold, variant) for fold in folds}
    assert found["f00"][0] == ["A"]
    assert "f01" not in found["f00"][1].families
    assert np.isfinite(found["f00"][1].scores).all()
    assert found["f02"][0] == ["A", "B"]
    assert "f01" in found["f02"][1].families
