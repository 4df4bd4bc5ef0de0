"""One model's scores through each kind of release: missing tasks, flags, means that fit."""

from __future__ import annotations

import numpy as np
import pytest
from support.fits import fit_task, predict_held_out
from support.zoo import make_models, make_task, mean_statistic

from mteblite.calibrations.variant import Variant
from mteblite.lite_scores.intervals import interval_half_widths, with_reference_range
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.joint_fitting import fit_joint
from mteblite.lite_scores.model_scores import score_model
from mteblite.lite_scores.reach import reach
from mteblite.validation.conformal import check_level, families_needed
from mteblite.validation.lomo import Settings
from mteblite.validation.public_scores import gather_public_scores

FAMILIES = make_models(14, siblings=2)
TYPES = {"A": "Retrieval", "B": "Retrieval", "C": "STS"}
COUNTS = dict.fromkeys(TYPES, 12)


@pytest.fixture(scope="module")
def evidences():
    return [make_task(t, kind, families=FAMILIES, n_items=80) for t, kind in TYPES.items()]


class Suite:
    """A released suite of one calibration."""

    def __init__(self, evidences, calibration):
        variant = Variant("strat_difficulty", "mean", "strat_difficulty", calibration)
        self.evidences = evidences
        self.fitted = [fit_task(e, variant, 12, (0,), statistic=mean_statistic) for e in evidences]
        held_out = predict_held_out(
            evidences, [variant], COUNTS, "family_lomo", 0, statistic=mean_statistic
        )
        widths = interval_half_widths(held_out, TYPES, str(variant))
        self.widths = with_reference_range(widths, full_scores(evidences), TYPES)
        settings = Settings(COUNTS, 0, statistic=mean_statistic)
        self.joint = None
        if calibration == "blup":
            joint = fit_joint(evidences, variant, settings, COUNTS).with_widths(self.widths)
            assert joint.tasks == ("A", "B", "C")
            self.joint = JointCalibration.from_json(joint.to_json())

    def score(self, observed, collapsed=()):
        return score_model(self.fitted, observed, self.widths, self.joint, collapsed=collapsed)

    def observed(self, place, value=None):
        found = {}
        for evidence, task in zip(self.evidences, self.fitted, strict=True):
            rows = [int(i[1:]) for i in task.selection["item_id"]]
            seen = evidence.outcomes if evidence.kind == "per_item" else evidence.observations
            own = np.asarray(seen[place])[rows]
            found[task.task] = own if value is None else np.full_like(own, value)
        return found


def full_scores(evidences):
    import pandas as pd

    return pd.concat(
        [
            pd.DataFrame({"model": list(e.models), "task": e.task, "main_score": e.full_scores})
            for e in evidences
        ]
    )


@pytest.fixture(scope="module", params=["linear", "crossfit", "blup"])
def suite(request, evidences):
    return Suite(evidences, request.param)


def test_means_are_those_of_the_tasks_and_intervals_hold_them(suite, evidences):
    truth = np.array([e.full_scores[4] for e in evidences])
    found = suite.score(suite.observed(4))
    tasks = found.tasks.set_index("task")
    assert found.suite["mean"] == pytest.approx(tasks["predicted"].mean())
    macro = (tasks.loc[["A", "B"], "predicted"].mean() + tasks.loc["C", "predicted"]) / 2
    assert found.suite["macro_mean"] == pytest.approx(macro)
    assert found.suite["macro_lower"] < macro < found.suite["macro_upper"]
    assert tasks["predicted"].to_numpy() == pytest.approx(truth, abs=0.2)
    assert tasks["observed"].all()
    assert (found.types["lower"] < found.types["predicted"]).all()
    assert set(found.tasks["interval_method"]) == {"conformal_family"}
    assert not found.suite["out_of_range"]


def test_a_model_beyond_all_others_is_flagged_on_every_level(suite):
    found = suite.score(suite.observed(0, 1.0))
    assert found.tasks["out_of_range"].all()
    assert found.types["out_of_range"].all()
    assert found.suite["out_of_range"] is True


def test_a_joint_release_predicts_a_task_that_was_not_scored(evidences):
    suite = Suite(evidences, "blup")
    observed = suite.observed(4)
    whole = suite.score(observed)
    del observed["B"]
    found = suite.score(observed)
    tasks = found.tasks.set_index("task")
    assert tasks["observed"].tolist() == [True, False, True]
    assert tasks["n_items"].tolist() == [12, 0, 12]
    assert np.isnan(tasks.loc["B", "raw"])
    wide = tasks["upper"] - tasks["lower"]
    assert wide["B"] > (whole.tasks.set_index("task").eval("upper - lower"))["B"]
    assert np.isfinite(found.suite["macro_mean"])
    with pytest.raises(ValueError, match="none of the suite's tasks has an estimate"):
        suite.score({})


def test_without_a_joint_release_a_missing_task_leaves_means_unknown(evidences):
    suite = Suite(evidences, "linear")
    observed = suite.observed(4)
    del observed["B"]
    found = suite.score(observed)
    assert found.tasks["task"].tolist() == ["A", "C"]
    assert np.isnan(found.suite["macro_mean"])
    assert found.suite["out_of_range"] is False


# --- collapsed models ------------------------------------------------------------------------


def test_a_collapsed_model_scores_what_it_did_and_nothing_is_imputed(suite):
    low = suite.observed(0, 0.02)
    low["C"] = np.full_like(low["C"], np.nan)  # a correlation of equal vectors
    found = suite.score(low, collapsed={"A", "B", "C"})
    tasks = found.tasks.set_index("task")
    assert tasks["predicted"].tolist() == pytest.approx([0.02, 0.02, 0.0])
    assert np.isfinite(tasks["raw"]).all()
    assert set(found.tasks["interval_method"]) == {"degenerate"}
    assert tasks["lower"].tolist() == [0, 0, -1]
    assert tasks["upper"].tolist() == [1, 1, 1]
    assert found.suite["macro_mean"] == pytest.approx(0.01)
    assert found.suite["interval_method"] == "degenerate"
    assert found.suite["macro_lower"] <= found.suite["macro_mean"] <= found.suite["macro_upper"]


def test_a_collapsed_task_is_neither_predicted_by_others_nor_predicts_them(suite):
    observed = suite.observed(4)
    usable = {t: rows for t, rows in observed.items() if t != "B"}
    whole = suite.score(usable).tasks.set_index("task")
    observed["B"] = np.full_like(observed["B"], 0.01)
    found = suite.score(observed, collapsed={"B"})
    tasks = found.tasks.set_index("task")
    assert tasks.loc["B", "predicted"] == pytest.approx(0.01)
    for task in ("A", "C"):
        assert tasks.loc[task, "predicted"] == whole.loc[task, "predicted"]
        assert tasks.loc[task, "interval_method"] == "conformal_family"
    types = found.types.set_index("task_type")["interval_method"]
    assert types.to_dict() == {"Retrieval": "degenerate", "STS": "conformal_family"}


def test_a_collapsed_model_is_never_above_every_reference_model(suite):
    found = suite.score(suite.observed(0, 1.0), collapsed={"A", "B", "C"})
    best = {t.task: t.reference_high for t in suite.fitted}
    predicted = found.tasks.set_index("task")["predicted"]
    assert all(predicted[task] <= best[task] for task in best)
    assert not found.tasks["out_of_range"].any()


# --- levels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "needed"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19)])
def test_a_level_needs_its_families(level, needed):
    assert families_needed(level) == needed
    check_level(level, needed)
    with pytest.raises(ValueError, match=f"at least {needed} families, there are {needed - 1}"):
        check_level(level, needed - 1)


def test_a_level_that_is_refused_says_what_is_allowed():
    with pytest.raises(ValueError, match=r"ask for at most 0\.75"):
        check_level(0.9, 3)


# --- public scores ---------------------------------------------------------------------------


def test_public_scores_are_of_models_without_outcomes():
    import pandas as pd

    tasks = pd.DataFrame({"task": ["A", "B"], "pool_task": ["A/1", "B/1"]})
    members = pd.DataFrame({"model": ["m", "pruned", "bare"], "family": ["f", "f", "g"]})
    rows = [("A/1", "m", 0.5), ("A/1", "pruned", 0.6), ("B/1", "pruned", 0.7), ("B/1", "bare", 0.2),
            ("A/1", "of another suite", 0.9)]  # fmt: skip
    scores = pd.DataFrame(rows, columns=["pool_task", "model", "main_score"])
    found = gather_public_scores(tasks, members, scores, {"m"})
    assert found is not None
    table = found.table.set_index("model")
    assert sorted(table.index) == ["bare", "pruned"]
    assert table.loc["pruned", ["family", "A", "B"]].tolist() == ["f", 0.6, 0.7]
    official = pd.DataFrame(
        [("m", "f", "A", 0.1), ("new", "h", "A", 0.3), ("new", "h", "Z", 0.4)],
        columns=["model", "family", "task", "main_score"],
    )
    more = gather_public_scores(tasks, members, scores, {"m"}, official)
    assert more is not None
    assert set(more.table["model"]) == {"bare", "pruned", "new"}
    assert gather_public_scores(tasks, members, scores, set(members["model"])) is None


# --- undefined, perfect and merged models ----------------------------------------------------


def test_an_undefined_score_is_that_of_chance_and_is_flagged(suite):
    """All cosines are equal, although vectors differ, so that a correlation is NaN."""
    seen = suite.observed(0)
    seen["A"] = np.full_like(np.asarray(seen["A"], dtype=float), np.nan)
    found = suite.score(seen)
    tasks = found.tasks.set_index("task")
    assert tasks.loc["A", "predicted"] == 0.0
    assert tasks["interval_method"].tolist() == ["degenerate", *["conformal_family"] * 2]
    assert found.suite["interval_method"] == "degenerate"
    assert np.isfinite(found.suite["macro_mean"])
    (warning,) = found.warnings
    assert warning.startswith("degenerate: the metric of A has no value")
    assert suite.score(suite.observed(0)).warnings == ()


def test_the_interval_of_a_perfect_model_reaches_the_top(suite):
    found = suite.score(suite.observed(0, 1.0))
    assert found.tasks["upper"].tolist() == [1.0, 1.0, 1.0]
    assert (found.types["upper"] == 1.0).all()
    assert (found.suite["macro_upper"], found.suite["mean_upper"]) == (1.0, 1.0)
    assert (found.tasks["predicted"] < 1.0).any()  # the calibration shrinks


def test_the_upper_end_rises_from_the_best_reference_model_to_the_top(suite):
    """Beyond the best reference model it rises without a jump; below it nothing changes."""
    task = suite.fitted[0]
    line = task.calibration
    best = (task.reference_high - line.intercept) / line.slope
    assert best < 1.0
    at = [reach(task, raw, line.slope * raw + line.intercept) for raw in (0.3, best, 1.0)]
    assert at == pytest.approx([line.slope * 0.3 + line.intercept, task.reference_high, 1.0])
    raws = np.linspace(best, 1.0, 20)
    rising = [reach(task, raw, line.slope * raw + line.intercept) for raw in raws]
    assert (np.diff(rising) > 0).all()
    assert np.diff(rising).max() < 0.2


def test_a_merge_scores_between_what_its_outcomes_say(suite):
    """The mean of the outcomes of two models lies between them, with an interval as theirs."""
    one, two = suite.observed(0), suite.observed(4)
    merged = suite.score({t: (one[t] + two[t]) / 2 for t in one})
    ends = [suite.score(m).tasks["predicted"].to_numpy() for m in (one, two)]
    predicted = merged.tasks["predicted"].to_numpy()
    assert predicted == pytest.approx(np.mean(ends, axis=0), abs=0.02)
    assert set(merged.tasks["interval_method"]) == {"conformal_family"}
    assert merged.warnings == ()
