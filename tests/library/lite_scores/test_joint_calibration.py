"""Scores under a joint calibration: intervals that hold, missing tasks, a release that survives."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from support.fits import fit_task, predict_held_out
from support.zoo import make_models, make_task, mean_statistic

from mteblite.calibrations.blup import Blup, JointData
from mteblite.calibrations.variant import Variant
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.joint_fitting import fit_joint
from mteblite.suites.task_types import TaskTypes
from mteblite.validation.conformal import half_width
from mteblite.validation.lomo import Settings
from mteblite.validation.targets import target_weights

TASKS = ("A", "B", "C", "D")
TYPES = TaskTypes({"A": "Retrieval", "B": "Retrieval", "C": "STS", "D": "Classification"})
NOISE = 0.04


def draw(n: int, seed: int, noise: float = NOISE) -> tuple[np.ndarray, np.ndarray]:
    """True scores and noisy estimates of n models."""
    rng = np.random.default_rng(seed)
    truth = 0.5 + 0.1 * rng.normal(size=(n, 1)) + 0.03 * rng.normal(size=(n, 4))
    return truth, truth + noise * rng.standard_t(4, size=truth.shape)


def release(n_families: int = 33, seed: int = 0) -> JointCalibration:
    """Fitted on n families; widths from as many others."""
    truth, taught = draw(n_families, seed)
    names = tuple(f"f{i}" for i in range(n_families))
    blup = Blup.fit(JointData(taught, truth, names, np.empty((0, 4)), ()))
    targets = target_weights(TASKS, TYPES, with_types=True)
    new, estimates = draw(n_families, seed + 1000)
    predicted = blup.predict(estimates).mean
    rows = []
    for target, w in targets.items():
        width = half_width(predicted @ w - new @ w, np.array(names))
        rows.append((target, width.value, width.method, width.n_families))
    widths = pd.DataFrame(rows, columns=["target", "half_width", "interval_method", "n_families"])
    return JointCalibration(TASKS, TYPES, blup, {}).with_widths(widths)


def test_intervals_cover_new_models_at_their_level():
    inside = {"macro": [], "task:C": []}
    for seed in range(40):
        fitted = release(seed=seed)
        truth, estimates = draw(20, seed + 5000)
        for row, estimate in zip(truth, estimates, strict=True):
            table = fitted.score(dict(zip(TASKS, estimate, strict=True))).set_index("target")
            macro = (row[:2].mean() + row[2] + row[3]) / 3
            for target, value in (("macro", macro), ("task:C", row[2])):
                low, high = table.loc[target, ["lower", "upper"]]
                inside[target].append(low <= value <= high)
    for found in inside.values():
        # ceil(34 * .9) / 34 = .912; 800 correlated draws
        assert np.mean(found) == pytest.approx(0.912, abs=0.04)


def test_missing_tasks_widen_the_interval_and_are_marked():
    fitted = release()
    everything = fitted.score(dict.fromkeys(TASKS, 0.6)).set_index("target")
    some = fitted.score({"A": 0.6, "C": 0.6}).set_index("target")
    assert everything["observed"].all()
    observed = some["observed"]
    assert observed[["task:A", "task:C", "type:STS"]].all()
    assert not observed[["macro", "mean", "task:B", "task:D", "type:Retrieval"]].any()
    assert some.loc["macro", "sd"] > everything.loc["macro", "sd"]
    assert some.loc["task:D", "predicted"] > 0.52
    assert set(some["interval_method"]) == {"conformal_family"}


def test_scores_stay_in_their_legal_range():
    table = release().score({"A": 1.4, "B": 1.4, "C": 1.4, "D": 1.4})
    assert table[["predicted", "upper"]].to_numpy().max() <= 1.0


def test_too_few_families_fall_back_and_say_so():
    fitted = release(n_families=5)
    assert set(fitted.score({"A": 0.5})["interval_method"]) == {"student_t"}
    bare = JointCalibration(TASKS, TYPES, fitted.blup, {})
    assert set(bare.score({"A": 0.5})["interval_method"]) == {"posterior"}


def test_a_release_survives_json():
    fitted = release()
    again = JointCalibration.from_json(fitted.to_json())
    estimates = {"A": 0.61, "B": 0.55, "D": 0.7}
    assert again.score(estimates).equals(fitted.score(estimates))
    other = json.loads(fitted.to_json()) | {"format": 9}
    with pytest.raises(ValueError, match="of format 9 and kind 'blup'; this version reads"):
        JointCalibration.from_json(json.dumps(other))


def test_wrong_tasks_are_named():
    with pytest.raises(ValueError, match="task 'Z' is not in the suite: A, B, C, D"):
        release().score({"Z": 0.4})
    with pytest.raises(ValueError, match="none of the suite's tasks has an estimate"):
        release().score({"A": float("nan")})


def test_a_suite_is_scored_as_its_validation_predicts():
    families = make_models(14, siblings=2)
    evidences = [
        make_task("A", families=families, n_items=80, binary=True),
        make_task("B", "Classification", families=families, n_items=80, binary=True),
        make_task("C", "STS", families=families, n_items=80),
    ]
    variant = Variant.parse("strat_difficulty/greg/strat_difficulty+blup")
    settings = Settings(dict.fromkeys("ABC", 12), 0, statistic=mean_statistic)
    left = "f05"
    rest = [e.only_models(np.array(e.families) != left) for e in evidences]
    fitted = fit_joint(rest, variant, settings)
    place = evidences[0].families.index(left)
    estimates = {}
    for evidence, own in zip(evidences, rest, strict=True):
        task = fit_task(own, variant, 12, (0,), statistic=mean_statistic)
        places = [int(i[1:]) for i in task.selection["item_id"]]
        rows = evidence.outcomes if evidence.kind == "per_item" else evidence.observations
        estimates[evidence.task] = task.calibrated(rows[place][places])
    table = fitted.score(estimates).set_index("target")
    held_out = predict_held_out(
        evidences, [variant], settings.k_by_task, "family_lomo", 0, statistic=mean_statistic
    )
    own = held_out[held_out["model"] == evidences[0].models[place]].set_index("task")["predicted"]
    # Inner folds are dealt over other families there, so the numbers are near, not equal.
    for task in "ABC":
        assert table.loc[f"task:{task}", "predicted"] == pytest.approx(own[task], abs=0.02)
    with pytest.raises(ValueError, match=r"add \+blup"):
        fit_joint(evidences, Variant("anchor", "mean", "strat"), settings)


def test_a_complete_model_has_the_half_widths_of_held_out_residuals():
    fitted = release()
    widths = pd.DataFrame(
        {"target": list(fitted.factors), "half_width": 0.07, "interval_method": "conformal_family",
         "n_families": 33}
    )  # fmt: skip
    scored = fitted.with_widths(widths).score(dict.fromkeys(TASKS, 0.5))
    assert scored["half_width"].to_numpy() == pytest.approx(0.07)
    less = fitted.with_widths(widths).score({"A": 0.5}).set_index("target")["half_width"]
    assert less["macro"] > 0.08
