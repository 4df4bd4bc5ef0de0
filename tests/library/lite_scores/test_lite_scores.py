"""Lite scores of a new model: predictions, intervals, aggregation, flags."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.fits import fit_task, predict_held_out
from support.zoo import make_models, make_task, mean_statistic

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.variant import Variant
from mteblite.lite_scores.aggregation import aggregate, suite_rows, type_rows
from mteblite.lite_scores.intervals import interval_half_widths
from mteblite.lite_scores.prediction import predict_tasks

TYPES = {"A": "Retrieval", "B": "Retrieval", "C": "STS"}
FAMILIES = make_models(14, siblings=2)
NEW = "f13-m0"


@pytest.fixture(scope="module")
def evidences():
    return [make_task(t, kind, families=FAMILIES, n_items=120) for t, kind in TYPES.items()]


@pytest.fixture(scope="module")
def fitted(evidences) -> list[FittedTask]:
    variant = Variant("anchor", "mean", "anchorset")
    return [fit_task(reference(e), variant, 20, (0,), statistic=mean_statistic) for e in evidences]


@pytest.fixture(scope="module")
def widths(evidences) -> pd.DataFrame:
    frame = predict_held_out(
        [reference(e) for e in evidences],
        ["anchor/mean/anchorset"],
        dict.fromkeys(TYPES, 20),
        "family_lomo",
        0,
        statistic=mean_statistic,
    )
    return interval_half_widths(frame, TYPES, "anchor/mean/anchorset")


def reference(evidence):
    return evidence.only_models(np.array(evidence.models) != NEW)


def observed(evidences, fitted, model=NEW):
    found = {}
    for e, f in zip(evidences, fitted, strict=True):
        place = e.models.index(model)
        rows = [int(i[1:]) for i in f.selection["item_id"]]
        found[e.task] = (e.outcomes if e.kind == "per_item" else e.observations)[place][rows]
    return found


def means(scores):
    """Of a model that is inside the range of the reference models."""
    return aggregate(scores.assign(reach=scores["predicted"]), TYPES)


def test_a_new_model_is_predicted_with_an_interval(evidences, fitted, widths):
    scores = predict_tasks(fitted, observed(evidences, fitted), widths)
    assert scores["task"].tolist() == ["A", "B", "C"]
    assert (scores["n_items"] == 20).all()
    assert (scores["lower"] < scores["predicted"]).all()
    assert (scores["predicted"] < scores["upper"]).all()
    assert set(scores["interval_method"]) == {"conformal_family"}
    truth = [e.full_scores[e.models.index(NEW)] for e in evidences]
    assert scores["predicted"].to_numpy() == pytest.approx(truth, abs=0.15)
    assert not scores["out_of_range"].any()


def test_half_widths_cover_every_target_and_aggregates_are_narrower(widths):
    targets = ["macro", "mean", "type:Retrieval", "type:STS", "task:A", "task:B", "task:C"]
    assert widths["target"].tolist() == targets
    by = widths.set_index("target")["half_width"]
    assert by["mean"] < by[["task:A", "task:B", "task:C"]].max()
    assert by["type:STS"] == by["task:C"]
    assert (widths["n_families"] == 13).all()


def test_half_widths_of_some_tasks_ignore_the_others(evidences):
    frame = predict_held_out(
        [reference(e) for e in evidences],
        ["pool/mean"],
        dict.fromkeys(TYPES, 20),
        "family_lomo",
        0,
        statistic=mean_statistic,
    )
    some = interval_half_widths(frame, {"A": "Retrieval", "B": "Retrieval"}, "pool/mean")
    everything = interval_half_widths(frame, TYPES, "pool/mean")
    expected = everything.set_index("target")["half_width"]
    for target, half in zip(some["target"], some["half_width"], strict=True):
        if ":" in target:
            assert half == expected[target]


def test_half_widths_of_an_unknown_variant_are_an_error():
    frame = pd.DataFrame({"protocol": ["family_lomo"], "variant": ["pool/mean"]})
    with pytest.raises(ValueError, match="variant 'x/y/z' has no family_lomo predictions yet"):
        interval_half_widths(frame, TYPES, "x/y/z")


def test_without_validation_there_are_no_intervals(evidences, fitted):
    scores = predict_tasks(fitted, observed(evidences, fitted))
    assert scores[["lower", "upper"]].isna().all(axis=None)
    assert set(scores["interval_method"]) == {"none"}
    row = suite_rows(means(scores), pd.DataFrame({"target": []}))
    assert np.isnan(row["macro_lower"])
    assert row["interval_method"] == "none"


def test_aggregates_by_hand(widths):
    scores = pd.DataFrame({"task": ["C", "A", "B"], "predicted": [0.9, 0.3, 0.6]})
    score = means(scores)
    assert score.mean == pytest.approx(0.6)
    assert score.macro_mean == pytest.approx((0.45 + 0.9) / 2)
    assert score.type_means == {"Retrieval": pytest.approx(0.45), "STS": pytest.approx(0.9)}
    row, half = suite_rows(score, widths), widths.set_index("target")["half_width"]
    assert row["mean_lower"] == pytest.approx(0.6 - half["mean"])
    assert row["macro_upper"] == pytest.approx(0.675 + half["macro"])
    types = type_rows(score, widths).set_index("task_type")
    assert types.loc["STS", "upper"] == pytest.approx(min(1.0, 0.9 + half["task:C"]))


def test_no_interval_reaches_beyond_what_the_types_allow():
    """Two tasks of Retrieval, whose scores cannot be negative, and one of STS, whose can."""
    score = means(pd.DataFrame({"task": ["A", "B", "C"], "predicted": [0.1, 0.2, 0.9]}))
    targets = ["mean", "macro", "type:Retrieval", "type:STS"]
    wide = pd.DataFrame({"target": targets, "half_width": 3.0, "interval_method": "conformal"})
    row = suite_rows(score, wide)
    assert (row["mean_lower"], row["mean_upper"]) == pytest.approx((-1 / 3, 1.0))
    assert (row["macro_lower"], row["macro_upper"]) == pytest.approx((-1 / 2, 1.0))
    types = type_rows(score, wide).set_index("task_type")
    assert types.loc["Retrieval", ["lower", "upper"]].tolist() == [0.0, 1.0]
    assert types.loc["STS", ["lower", "upper"]].tolist() == [-1.0, 1.0]


def test_a_missing_task_makes_the_means_it_belongs_to_undefined():
    score = means(pd.DataFrame({"task": ["A", "B"], "predicted": [0.3, 0.6]}))
    assert np.isnan([score.mean, score.macro_mean, score.type_means["STS"]]).all()
    assert score.type_means["Retrieval"] == pytest.approx(0.45)
    assert score.n_tasks == 2


def test_models_beyond_the_reference_models_are_flagged(evidences, fitted, widths):
    best = {t: np.ones_like(v) for t, v in observed(evidences, fitted).items()}
    scores = predict_tasks(fitted, best, widths)
    assert scores["out_of_range"].all()
    assert scores["upper"].max() <= 1.0
    usual = predict_tasks(fitted, observed(evidences, fitted), widths)
    assert not usual["out_of_range"].any()


def test_only_selected_items_of_the_new_model_matter(evidences, fitted):
    changed = []
    for e in evidences:
        outcomes = e.outcomes.copy()
        chosen = next(f for f in fitted if f.task == e.task).selection["item_id"]
        rest = np.setdiff1d(np.arange(len(e.items)), [int(i[1:]) for i in chosen])
        outcomes[e.models.index(NEW), rest] = 0.123
        changed.append(outcomes)
    before = predict_tasks(fitted, observed(evidences, fitted))
    others = [
        dataclasses.replace(
            e,
            outcomes=o,
            observations=None if e.observations is None else tuple(x[:, None] for x in o),
        )
        for e, o in zip(evidences, changed, strict=True)
    ]
    pd.testing.assert_frame_equal(before, predict_tasks(fitted, observed(others, fitted)))


def test_wrong_input_is_refused(fitted):
    with pytest.raises(ValueError, match="task 'Z' has outcomes but no fitted selection"):
        predict_tasks(fitted, {"Z": np.zeros(20)})
    with pytest.raises(ValueError, match="'Z' is not in the suite"):
        means(pd.DataFrame({"task": ["Z"], "predicted": [0.1]}))
    with pytest.raises(ValueError, match="one is there twice"):
        means(pd.DataFrame({"task": ["A", "A"], "predicted": [0.1, 0.2]}))
    with pytest.raises(ValueError, match="got outcomes on 3 items; the selection has 20"):
        predict_tasks(fitted, {"A": np.zeros(3)})
