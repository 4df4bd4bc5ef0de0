"""Estimators that use the reference models, each against brute force or an independent one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.fits import estimate, fit_task, predicted_by
from support.zoo import make_models, make_task

from mteblite.calibrations.estimator import EstimationContext
from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.greg import PENALTY_PER_MODEL
from mteblite.calibrations.linear import fit_calibration
from mteblite.calibrations.registry import ESTIMATORS, NEEDS_REFERENCE, find_estimator, make_context
from mteblite.calibrations.switch import inside_weight
from mteblite.calibrations.task_fit import reference_of
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import fit_items
from mteblite.selections.token_budget import choose

FAMILIES = make_models(24, siblings=2)


def context_of(
    evidence: TaskEvidence, k: int = 20, method: str = "anchor"
) -> tuple[EstimationContext, np.ndarray]:
    """A context on k items and their positions."""
    fit = fit_items(evidence)
    selection = choose(method, evidence, fit, k, ("s",))
    context = make_context(
        selection,
        fit.item_parameters,
        evidence.items,
        bounds=(0.0, 1.0),
        reference=reference_of(evidence),
    )
    return context, context.positions


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_models_are_estimated_independently_and_missing_outcomes_left_out(estimator, binary):
    context, chosen = context_of(make_task(families=FAMILIES, binary=binary))
    outcomes = make_task(families=FAMILIES, binary=binary, seed=0).outcomes[:4, chosen].copy()
    outcomes[1, :3] = np.nan
    outcomes[2] = np.nan
    together = find_estimator(estimator)(outcomes, context)
    for row, value in zip(outcomes, together, strict=True):
        alone = find_estimator(estimator)(row[None], context)[0]
        assert alone == pytest.approx(value, abs=1e-12, nan_ok=True)
    assert np.isnan(together).tolist() == [False, False, True, False]


@pytest.mark.parametrize("estimator", sorted(NEEDS_REFERENCE))
def test_estimators_that_need_the_reference_models_say_so(estimator):
    evidence = make_task()
    fit = fit_items(evidence)
    selection = choose("anchor", evidence, fit, 20, ())
    with pytest.raises(ValueError, match="needs the outcomes of the reference models"):
        estimate(estimator, np.zeros(20), selection, fit.item_parameters, evidence.items)


# --- GREG and the switch ---------------------------------------------------------------------


def test_greg_equals_scikit_learn_item_by_item():
    from sklearn.linear_model import Ridge

    evidence = make_task(families=FAMILIES, binary=True, cells=3)
    reference = evidence.only_models(np.arange(len(evidence.models)) > 2)
    context, chosen = context_of(reference)
    outcomes = evidence.outcomes[:3, chosen]
    found = find_estimator("greg")(outcomes, context)
    features = reference.outcomes.T
    for y, value in zip(outcomes, found, strict=True):
        ridge = Ridge(alpha=PENALTY_PER_MODEL * features.shape[1]).fit(features[chosen], y)
        pool = np.clip(ridge.predict(features), 0, 1)
        pool[chosen] = y
        assert value == pytest.approx(float(pool @ context.pool_weights))


def frontier_task(seed: int) -> tuple[TaskEvidence, TaskEvidence]:
    """A task split into the lower 60 % of its models and the best fifth."""
    families = make_models(60)
    evidence = make_task(families=families, n_items=400, binary=True, seed=seed)
    order = np.argsort(evidence.full_scores)
    low, top = np.zeros(60, dtype=bool), np.zeros(60, dtype=bool)
    low[order[:36]] = True
    top[order[-12:]] = True
    return evidence.only_models(low), evidence.only_models(top)


def errors_beyond(estimator: str, k: int = 40) -> float:
    """Mean absolute error for models better than every reference model, over five tasks."""
    found = []
    for seed in range(5):
        low, top = frontier_task(seed)
        fitted = fit_task(low, Variant("anchor", estimator, "strat"), k, (0,))
        places = [int(i[1:]) for i in fitted.selection["item_id"]]
        predicted = [predicted_by(fitted, row[places]) for row in top.outcomes]
        found.append(np.abs(predicted - top.full_scores).mean())
    return float(np.mean(found))


def test_the_switch_holds_beyond_the_reference_models_where_gp_does_not():
    errors = {name: errors_beyond(name) for name in ("gp", "switch")}
    assert errors["switch"] < 0.7 * errors["gp"]


def test_the_switch_is_calibrated_gp_inside_and_greg_outside():
    evidence = make_task(families=FAMILIES, n_items=400)
    context, chosen = context_of(evidence)
    reference = reference_of(evidence)
    pool_means = reference.outcomes @ context.pool_weights
    shift = (reference.full_scores - pool_means).mean()
    best = np.ones((1, len(chosen)))
    greg = find_estimator("greg")(best, context) + shift
    assert find_estimator("switch")(best, context) == pytest.approx(greg, abs=1e-6)
    middle = evidence.outcomes[:, chosen].mean(axis=0, keepdims=True)
    gp = find_estimator("gp")
    line = fit_calibration(
        "linear", gp(evidence.outcomes[:, chosen], context), evidence.full_scores
    )
    inside = line.apply(gp(middle, context))
    greg = find_estimator("greg")(middle, context) + shift
    weight = 1 / (1 + np.exp(-1))
    assert find_estimator("switch")(middle, context) == pytest.approx(
        weight * inside + (1 - weight) * greg
    )


def test_weight_of_the_switch_by_hand():
    weight = inside_weight(np.array([0.5, 0.6, 0.7, 0.1, 9.0]), np.full(5, 0.1), 0.2, 0.6)
    at = [1 / (1 + np.exp(4 * (z - 0.25))) for z in (0, 0, 1, 1)]
    assert weight[:4] == pytest.approx(at)
    assert weight[4] < 1e-9


# --- as fitted tasks -------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", sorted(NEEDS_REFERENCE))
@pytest.mark.parametrize("calibration", ["linear", "crossfit", "crossfit_offset", "blup"])
def test_fitted_tasks_predict_new_models(estimator, calibration):
    evidence = make_task(families=FAMILIES, n_items=300)
    new = np.arange(len(evidence.models)) == 7
    variant = Variant("anchor", estimator, "strat", calibration)
    fitted = fit_task(evidence.only_models(~new), variant, 30, (0,))
    places = [int(i[1:]) for i in fitted.selection["item_id"]]
    predicted = predicted_by(fitted, evidence.outcomes[7, places])
    assert predicted == pytest.approx(evidence.full_scores[7], abs=0.12)
    again = FittedTask.from_tables(
        task=fitted.task, task_type=fitted.task_type, kind=fitted.kind, items=fitted.items,
        selection=fitted.selection, item_parameters=fitted.item_parameters,
        calibration=fitted.calibration_row(), reference=fitted.reference,
    )  # fmt: skip
    assert predicted_by(again, evidence.outcomes[7, places]) == predicted
    released = FittedTask.from_json(fitted.to_json())
    assert predicted_by(released, evidence.outcomes[7, places]) == predicted


def test_estimators_of_the_full_score_are_not_calibrated_again_by_default():
    evidence = make_task(families=FAMILIES)

    def fitted(estimator, evidence):
        return fit_task(evidence, Variant("anchor", estimator, "strat"), 20, (0,))

    assert fitted("switch", evidence).calibration_method == "none"
    assert fitted("greg", evidence).calibration_method == "linear"
    same = dataclasses.replace(evidence, full_scores=np.full(len(evidence.models), 0.5))
    fallen_back = fitted("switch", same)
    assert (fallen_back.estimator, fallen_back.calibration_method) == ("mean", "linear")
