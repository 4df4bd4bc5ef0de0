"""Paired differences: siblings are told apart better than their single scores would allow."""

from __future__ import annotations

import dataclasses
from functools import lru_cache

import numpy as np
import pytest
from support.fits import fit_task
from support.zoo import make_models, make_task, mean_statistic

from mteblite.calibrations.blup import Blup
from mteblite.calibrations.task_covariance import TaskCovariance
from mteblite.calibrations.variant import Variant
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.pairing import paired_differences
from mteblite.suites.task_types import TaskTypes

FAMILIES = make_models(14)
TYPES = {"A": "Retrieval", "B": "Classification", "C": "STS"}


@pytest.fixture(scope="module")
def fitted():
    variant = Variant("strat_difficulty", "mean", "strat_difficulty", "offset")
    return [
        fit_task(make_task(t, kind, families=FAMILIES, n_items=400), variant, 40, (0,),
                 statistic=mean_statistic)
        for t, kind in TYPES.items()
    ]  # fmt: skip


@lru_cache
def task_of(name: str, task_type: str):
    return make_task(name, task_type, families=FAMILIES, n_items=400)


def observed(fitted, shift: float, noise: float, seed: int):
    """A model and a sibling that is better by `shift` in expectation, on the selections."""
    found: tuple[dict, dict] = ({}, {})
    for task in fitted:
        rng = np.random.default_rng([seed, ord(task.task)])
        evidence = task_of(task.task, task.task_type)
        places = [int(i[1:]) for i in task.selection["item_id"]]
        base = evidence.outcomes[seed % len(evidence.outcomes), places]
        pair = (base + shift + noise * rng.normal(size=40), base)
        for model, values in zip(found, pair, strict=True):
            model[task.task] = values if task.kind == "per_item" else values[:, None]
    return found


def test_the_same_model_does_not_differ(fitted):
    one, _ = observed(fitted, 0.0, 0.0, 1)
    for found in paired_differences(fitted, one, one).values():
        assert (found.value, found.lower, found.upper) == (0.0, 0.0, 0.0)


def test_a_constant_gain_is_certain_although_scores_are_not(fitted):
    better, worse = observed(fitted, 0.02, 0.0, 2)
    macro = paired_differences(fitted, better, worse)["macro"]
    assert macro.value == pytest.approx(0.02)
    assert macro.lower == pytest.approx(0.02)
    assert macro.share_positive == 1.0


def test_intervals_cover_the_true_gain(fitted):
    inside = []
    for seed in range(150):
        better, worse = observed(fitted, 0.03, 0.1, seed)
        macro = paired_differences(fitted, better, worse, draws=150)["macro"]
        inside.append(macro.lower <= 0.03 <= macro.upper)
    # The noise is drawn for these 40 items alone, while the interval takes them for a tenth of the
    # pool: 1.645 sqrt(.9) standard errors hold 88 %.
    assert np.mean(inside) == pytest.approx(0.88, abs=0.08)


def test_order_turns_the_sign_and_slopes_scale(fitted):
    better, worse = observed(fitted, 0.03, 0.1, 5)
    there = paired_differences(fitted, better, worse)["macro"]
    back = paired_differences(fitted, worse, better)["macro"]
    assert back.value == pytest.approx(-there.value)
    assert back.lower == pytest.approx(-there.upper)
    steep = [
        dataclasses.replace(f, calibration=dataclasses.replace(f.calibration, slope=2.0))
        for f in fitted
    ]
    double = paired_differences(steep, better, worse)["macro"]
    assert double.value == pytest.approx(2 * there.value)
    assert double.upper - double.lower == pytest.approx(2 * (there.upper - there.lower))


def test_parts_of_an_aggregate_count_as_one_task(fitted):
    better, worse = observed(fitted, 0.03, 0.1, 5)
    kinds = dict.fromkeys(TYPES, "Retrieval")
    alike = [dataclasses.replace(f, task_type="Retrieval") for f in fitted if f.task != "C"]
    alike.append(dataclasses.replace(fitted[2], task_type="STS"))
    types = TaskTypes(kinds | {"C": "STS"}, {"A": "F", "C": "F"})
    found = paired_differences(alike, better, worse, types=types)
    a, b, c = (found[f"task:{t}"].value for t in "ABC")
    assert found["mean"].value == pytest.approx(a / 4 + b / 2 + c / 4)


def test_missing_tasks_are_named(fitted):
    better, worse = observed(fitted, 0.03, 0.1, 5)
    del worse["B"]
    with pytest.raises(ValueError, match="task 'B' was not scored for both models"):
        paired_differences(fitted, better, worse)


COVARIANCE = 0.01 * np.array([[1.0, 0.6, 0.3], [0.6, 1.5, 0.4], [0.3, 0.4, 0.8]])


def joint_calibration(scale: float = 1.0) -> JointCalibration:
    prior = TaskCovariance(np.full(3, 0.5), scale * COVARIANCE, 20.0)
    return JointCalibration(tuple(TYPES), TYPES, Blup(prior, np.full(3, 1e-3)), {})


def test_joint_differences_equal_those_of_a_pair_of_models_given_both(fitted):
    """Condition both models' scores at once, on estimates whose errors are mostly shared."""
    better, worse = observed(fitted, 0.03, 0.1, 7)
    alone = paired_differences(fitted, better, worse)
    found = paired_differences(fitted, better, worse, joint=joint_calibration())
    gap = np.array([alone[f"task:{t}"].value for t in TYPES])
    width = np.array([found[f"task:{t}"].upper - found[f"task:{t}"].value for t in TYPES])
    z = 1.6448536269514722
    # The paired noise is what the joint interval of a task goes to under a flat prior.
    flat = paired_differences(fitted, better, worse, joint=joint_calibration(1e5))
    noise = np.array([(flat[f"task:{t}"].upper - flat[f"task:{t}"].value) / z for t in TYPES]) ** 2
    own = 0.002
    errors = np.block(
        [[np.diag(noise / 2) + own * np.eye(3), own * np.eye(3)],
         [own * np.eye(3), np.diag(noise / 2) + own * np.eye(3)]]
    )  # fmt: skip
    prior = np.block([[COVARIANCE, np.zeros((3, 3))], [np.zeros((3, 3)), COVARIANCE]])
    gain = prior @ np.linalg.inv(prior + errors)
    middle = np.full(3, 0.61)
    mean = 0.5 + gain @ (np.concatenate([middle + gap / 2, middle - gap / 2]) - 0.5)
    posterior = prior - gain @ prior
    turn = np.hstack([np.eye(3), -np.eye(3)])
    assert [found[f"task:{t}"].value for t in TYPES] == pytest.approx(turn @ mean)
    sd = np.sqrt(np.diag(turn @ posterior @ turn.T))
    assert width == pytest.approx(z * sd, rel=1e-4)
    assert found["macro"].value == pytest.approx((turn @ mean).mean())


def test_joint_differences_tell_a_task_that_was_not_scored(fitted):
    better, worse = observed(fitted, 0.05, 0.0, 2)
    two = [f for f in fitted if f.task != "C"]
    found = paired_differences(two, better, worse, joint=joint_calibration())
    assert 0.0 < found["task:C"].value < 0.05
    assert found["task:C"].lower < 0.0 < found["task:A"].lower
    assert found["macro"].share_positive < found["task:A"].share_positive
    same = paired_differences(fitted, better, better, joint=joint_calibration())
    assert all(d.value == 0.0 and d.share_positive == 0.5 for d in same.values())


def test_joint_intervals_cover_differences_drawn_from_the_prior(fitted):
    """True gains by task from the prior of differences, measured with item noise."""
    rng = np.random.default_rng(3)
    root = np.linalg.cholesky(2.0 * COVARIANCE)
    inside = []
    for seed in range(80):
        better, worse = observed(fitted, 0.0, 0.3, seed)
        gains = dict(zip(TYPES, root @ rng.normal(size=3), strict=True))
        better = {t: better[t] + gains[t] for t in TYPES}
        found = paired_differences(fitted, better, worse, draws=100, joint=joint_calibration())
        inside += [found[f"task:{t}"].lower <= g <= found[f"task:{t}"].upper
                   for t, g in gains.items()]  # fmt: skip
    # As above: the noise is of 40 items alone, the interval takes them for a tenth of the pool.
    assert np.mean(inside) == pytest.approx(0.88, abs=0.05)
