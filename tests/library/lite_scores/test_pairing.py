"""Paired differences: their value is that of two scores, their interval from held-out pairs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from support.fits import fit_task, predict_held_out
from support.zoo import make_models, make_task, mean_statistic

from mteblite.calibrations.variant import Variant
from mteblite.lite_scores.intervals import interval_half_widths
from mteblite.lite_scores.joint_fitting import fit_joint
from mteblite.lite_scores.model_scores import score_model
from mteblite.lite_scores.pair_widths import FLOOR, pair_half_width, with_pair_widths
from mteblite.lite_scores.pairing import paired_differences
from mteblite.lite_scores.redraws import redraw_variance, redrawn
from mteblite.suites.task_types import TaskTypes
from mteblite.validation.lomo import Settings

FAMILIES = make_models(30, siblings=2)
TYPES = {"A": "Retrieval", "B": "Classification", "C": "STS"}
COUNTS = dict.fromkeys(TYPES, 20)
TARGETS = ("macro", "task:A", "task:B", "task:C")


class Suite:
    """A suite with a calibration, whose held-out pairs set the widths."""

    def __init__(self, calibration: str, families: dict[str, str], n_items: int = 150):
        self.variant = Variant("strat_difficulty", "mean", "strat_difficulty", calibration)
        self.evidences = [
            make_task(t, kind, families=families, n_items=n_items) for t, kind in TYPES.items()
        ]
        self.held_out = predict_held_out(
            self.evidences, [self.variant], COUNTS, "family_lomo", 0, statistic=mean_statistic
        )
        self.fitted = [
            fit_task(e, self.variant, 20, (0,), statistic=mean_statistic) for e in self.evidences
        ]
        self.widths = self.widths_without(())
        settings = Settings(COUNTS, 0, statistic=mean_statistic)
        blup = calibration == "blup"
        self.joint = fit_joint(self.evidences, self.variant, settings, COUNTS) if blup else None

    def widths_without(self, families) -> pd.DataFrame:
        others = self.held_out[~self.held_out["fold"].isin(families)]
        widths = interval_half_widths(others, TYPES, str(self.variant))
        return with_pair_widths(
            widths, others, str(self.variant), self.fitted, self.evidences, TYPES
        )

    def observed(self, model: str) -> dict[str, np.ndarray]:
        found = {}
        for evidence, task in zip(self.evidences, self.fitted, strict=True):
            rows = [int(i[1:]) for i in task.selection["item_id"]]
            seen = evidence.outcomes if evidence.kind == "per_item" else evidence.observations
            found[task.task] = np.asarray(seen[evidence.models.index(model)])[rows]
        return found

    def compare(self, first: str, second: str, **options):
        one, two = self.observed(first), self.observed(second)
        options = {"widths": self.widths, "joint": self.joint} | options
        return paired_differences(self.fitted, one, two, **options)


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite("linear", FAMILIES)


@pytest.fixture(scope="module")
def joint() -> Suite:
    return Suite("blup", make_models(12, siblings=2), n_items=60)


@pytest.mark.parametrize("name", ["suite", "joint"])
def test_a_difference_is_that_of_the_two_lite_scores(name, request):
    made = request.getfixturevalue(name)
    scores = [
        score_model(made.fitted, made.observed(m), made.widths, made.joint)
        for m in ("f00-m0", "f05-m0")
    ]
    found = made.compare("f00-m0", "f05-m0")
    one, two = (s.tasks.set_index("task")["predicted"] for s in scores)
    for task in TYPES:
        assert found[f"task:{task}"].value == pytest.approx(one[task] - two[task])
    macro = scores[0].suite["macro_mean"] - scores[1].suite["macro_mean"]
    assert found["macro"].value == pytest.approx(macro)


def test_order_turns_the_sign(suite):
    there, back = (suite.compare(*p)["macro"] for p in (("f00-m0", "f01-m0"), ("f01-m0", "f00-m0")))
    assert back.value == -there.value
    assert back.lower == pytest.approx(-there.upper)
    assert back.share_positive == pytest.approx(1 - there.share_positive)
    same = suite.compare("f00-m0", "f00-m0")["macro"]
    assert (same.value, same.share_positive) == (0.0, 0.5)
    assert same.lower < 0.0 < same.upper  # equal answers on 20 items are not equal scores


def test_redraws_share_the_items_and_know_the_finite_pool(suite):
    task = suite.fitted[0]
    one, two = suite.observed("f00-m0")["A"], suite.observed("f01-m0")["A"]
    drawn = redrawn(task, [one, two, one + 0.1], draws=4000)
    weights = task.selection["weight"].to_numpy()
    gap = one - two
    centred = gap - weights @ gap
    expected = (weights**2 @ centred**2) * (1 - 20 / 150) * 20 / 19 * task.calibration.slope**2
    assert redraw_variance(drawn[0], drawn[1]) == pytest.approx(expected, rel=0.1)
    assert redraw_variance(drawn[0], drawn[2]) == pytest.approx(0.0, abs=1e-12)


def test_the_factor_of_strangers_is_a_student_t_of_scaled_differences():
    """By hand, on families of one model, for one task."""
    single = Suite("linear", make_models(8), n_items=60)
    part = single.held_out[single.held_out["task"] == "B"].set_index("model")
    error = part["predicted"] - part["actual"]
    task, models = single.fitted[1], sorted(part.index)
    scores = dict(
        zip(models, redrawn(task, [single.observed(m)["B"] for m in models]), strict=True)
    )
    pairs = [(a, b) for i, a in enumerate(models) for b in models[:i]]
    variance = np.array([redraw_variance(scores[a], scores[b]) for a, b in pairs])
    scale = np.sqrt(variance + FLOOR * variance.mean())
    scaled = np.array([error[a] - error[b] for a, b in pairs]) / scale
    row = single.widths.set_index("target").loc["task:B"]
    assert row["pair_sd"] == pytest.approx(np.sqrt(variance.mean()))
    assert row["stranger_factor"] == pytest.approx(
        student.ppf(0.95, 7) * np.sqrt((scaled**2).mean())
    )
    assert row["sibling_families"] == 0
    assert np.isnan(row["sibling_factor"])


def test_which_rule_applies():
    row = {"half_width": 0.1, "level": 0.9, "pair_sd": 0.2, "stranger_factor": 2.0,
           "sibling_factor": 3.0, "sibling_families": 9}  # fmt: skip
    floor = FLOOR * 0.2**2
    assert pair_half_width(row, 0.0, siblings=False) == (2 * floor**0.5, "strangers")
    assert pair_half_width(row, 0.0, siblings=True) == (3 * floor**0.5, "siblings")
    few = row | {"sibling_families": 8}
    wide = 2 * (0.2**2 + floor) ** 0.5
    assert pair_half_width(few, 0.0, siblings=True) == pytest.approx((wide, "few_siblings"))
    noisy = 3 * (0.3**2 + floor) ** 0.5
    assert pair_half_width(few, 0.3**2, siblings=True)[0] == pytest.approx(noisy)
    none = few | {"sibling_factor": np.nan, "sibling_families": 0}
    assert pair_half_width(none, 0.0, siblings=True) == pytest.approx((wide, "few_siblings"))
    earlier = {"half_width": 0.1, "level": 0.9}
    assert pair_half_width(earlier, 0.0, siblings=True) == (pytest.approx(0.1 * 2**0.5), "scores")


def test_intervals_cover_pairs_that_set_no_width(suite):
    """Differences of held-out predictions against the widths of all other families."""
    predicted, actual = (
        suite.held_out.pivot(index="model", columns="task", values=v)
        for v in ("predicted", "actual")
    )
    inside: dict[str, list[bool]] = {"siblings": [], "strangers": []}
    models = sorted(FAMILIES)
    for first in models[::10]:
        for second in models[1::8]:
            own = {FAMILIES[first], FAMILIES[second]}
            if first == second:
                continue
            siblings = len(own) == 1
            found = suite.compare(
                first, second, widths=suite.widths_without(own), siblings=siblings
            )
            gap = predicted.loc[first] - predicted.loc[second]
            gap = gap - (actual.loc[first] - actual.loc[second])
            for task in TYPES:
                half = found[f"task:{task}"].upper - found[f"task:{task}"].value
                inside["siblings" if siblings else "strangers"].append(abs(gap[task]) <= half)
    assert len(inside["strangers"]) > 50
    assert np.mean(inside["strangers"]) == pytest.approx(0.9, abs=0.08)


def test_siblings_of_enough_families_have_intervals_of_their_own(suite):
    """Ten families have siblings, whose skills differ by a tenth of what strangers' do."""
    assert (suite.widths["sibling_families"] == 10).all()
    own = suite.compare("f00-m0", "f00-m1", siblings=True)
    strangers = suite.compare("f00-m0", "f00-m1")
    for target in TARGETS:
        assert (own[target].method, strangers[target].method) == ("siblings", "strangers")
        assert own[target].value == strangers[target].value


def test_parts_of_an_aggregate_count_as_one_task(suite):
    kinds = dict.fromkeys(TYPES, "Retrieval") | {"C": "STS"}
    fitted = [dataclasses.replace(f, task_type=kinds[f.task]) for f in suite.fitted]
    types = TaskTypes(kinds, {"A": "F", "C": "F"})
    targets = [*suite.widths["target"][:2], "type:Retrieval", "type:STS", *TARGETS[1:]]
    widths = pd.DataFrame({"target": targets, "half_width": 0.1, "level": 0.9})
    one, two = suite.observed("f00-m0"), suite.observed("f01-m0")
    found = paired_differences(fitted, one, two, widths, types=types)
    a, b, c = (found[f"task:{t}"].value for t in "ABC")
    assert found["mean"].value == pytest.approx(a / 4 + b / 2 + c / 4)


def test_missing_tasks_are_named(suite):
    one, two = suite.observed("f00-m0"), suite.observed("f01-m0")
    del two["B"]
    with pytest.raises(ValueError, match="task 'B' was not scored for both models"):
        paired_differences(suite.fitted, one, two, suite.widths)


def test_joint_differences_tell_a_task_that_was_not_scored(joint):
    one, two = joint.observed("f00-m0"), joint.observed("f05-m0")
    two_tasks = [f for f in joint.fitted if f.task != "C"]
    whole = paired_differences(joint.fitted, one, two, joint.widths, joint=joint.joint)
    found = paired_differences(two_tasks, one, two, joint.widths, joint=joint.joint)
    assert np.isfinite(found["task:C"].value)
    for target in ("macro", "task:C"):
        width, before = (d[target].upper - d[target].lower for d in (found, whole))
        assert width > before
    without = joint.widths.drop(columns="stranger_factor")
    plain = paired_differences(joint.fitted, one, two, without, joint=joint.joint)["macro"]
    assert plain.method == "scores"
    assert plain.lower < plain.value < plain.upper
