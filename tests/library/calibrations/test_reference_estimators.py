"""Estimators that use the reference models, each against brute force or an independent one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.zoo import make_models, make_task

from mteblite.calibrations.estimator import EstimationContext, Reference
from mteblite.calibrations.fitted_task import FittedTask, calibrate_task, fit_task
from mteblite.calibrations.greg import PENALTY_PER_MODEL
from mteblite.calibrations.linear import fit_linear
from mteblite.calibrations.registry import (
    ESTIMATORS,
    NEEDS_REFERENCE,
    estimate,
    find_estimator,
    make_context,
)
from mteblite.calibrations.ridge import PENALTIES, fit_ridge
from mteblite.calibrations.switch import inside_weight
from mteblite.calibrations.training_fit import reference_of
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import RESPONSE_MODELS, fit_items
from mteblite.lite_scores.release import fitted_from_json, release_json
from mteblite.selections.registry import select

FAMILIES = make_models(24, siblings=2)


def context_of(
    evidence: TaskEvidence, k: int = 20, method: str = "anchor"
) -> tuple[EstimationContext, np.ndarray]:
    """A context on k items and their positions."""
    fit = fit_items(evidence)
    selection = select(method, evidence, fit, k, ("s",))
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
    selection = select("anchor", evidence, fit, 20, ())
    with pytest.raises(ValueError, match="needs the outcomes of the reference models"):
        estimate(estimator, np.zeros(20), selection, fit.item_parameters, evidence.items)


def test_theta_is_the_full_score_of_the_estimated_ability():
    evidence = make_task(binary=True)
    context, chosen = context_of(evidence)
    theta = RESPONSE_MODELS["two_pl"].ability(
        context.parameters.take(chosen), evidence.outcomes[:, chosen]
    )
    found = find_estimator("theta")(evidence.outcomes[:, chosen], context)
    expected = evidence.full_scores.mean() + evidence.full_scores.std() * theta
    assert found == pytest.approx(expected)


# --- ridge -----------------------------------------------------------------------------------


def test_ridge_equals_scikit_learn_with_the_penalty_of_least_left_out_error():
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    families = np.repeat(np.arange(10), 3)
    x = rng.random((30, 12))
    y = x @ rng.normal(size=12) + 0.3 * rng.normal(size=30)
    center, slope, level = fit_ridge(x, y, families)
    singular = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
    errors = {}
    for penalty in PENALTIES * (singular**2).mean():
        by_family = []
        for family in range(10):
            rest = families != family
            # The closed form keeps the overall mean in the centring, so the left-out fit is that
            # of a ridge with a free intercept on the remaining rows.
            fitted = Ridge(alpha=penalty).fit(x[rest], y[rest])
            by_family.append(((fitted.predict(x[~rest]) - y[~rest]) ** 2).mean())
        errors[penalty] = np.mean(by_family)
    best = Ridge(alpha=min(errors, key=errors.get)).fit(x, y)
    assert slope == pytest.approx(best.coef_)
    new = rng.random((5, 12))
    assert level + (new - center) @ slope == pytest.approx(best.predict(new))


def test_ridge_leaves_out_whole_families():
    sizes = {"families": 0.0, "models": 0.0}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        # Siblings are copies and scores are noise: left out alone, each is told by its twin.
        x = np.repeat(rng.random((12, 40)), 2, axis=0)
        y = np.repeat(rng.random(12), 2)
        sizes["families"] += np.abs(fit_ridge(x, y, np.repeat(np.arange(12), 2))[1]).sum()
        sizes["models"] += np.abs(fit_ridge(x, y, np.arange(24))[1]).sum()
    assert sizes["families"] < 0.5 * sizes["models"]


def test_ridge_without_spread_or_with_one_family_still_works():
    flat = fit_ridge(np.full((5, 3), 0.5), np.arange(5.0), np.arange(5))
    assert (flat[1] == 0).all()
    assert flat[2] == 2.0
    one = fit_ridge(np.random.default_rng(0).random((5, 3)), np.arange(5.0), np.zeros(5))
    assert np.isfinite(one[1]).all()


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
        predicted = [fitted.predict(row[places]) for row in top.outcomes]
        found.append(np.abs(predicted - top.full_scores).mean())
    return float(np.mean(found))


def test_the_switch_holds_beyond_the_reference_models_where_gp_does_not():
    errors = {name: errors_beyond(name) for name in ("gp", "ridge", "switch")}
    assert errors["switch"] < 0.7 * errors["gp"]
    assert errors["switch"] < 0.7 * errors["ridge"]


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
    line = fit_linear(gp(evidence.outcomes[:, chosen], context), evidence.full_scores)
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


# --- gp with lambda --------------------------------------------------------------------------


def share_of(evidence: TaskEvidence, k: int, method: str = "random") -> float:
    from mteblite.calibrations.gp_lambda import mean_share

    return mean_share(context_of(evidence, k, method)[0])


def test_the_mean_counts_more_with_more_items_and_worse_models():
    evidence = make_task(families=FAMILIES, n_items=400)
    assert 0 < share_of(evidence, 10) < share_of(evidence, 100) < 1
    assert share_of(evidence, 10) < share_of(evidence, 10, "anchor")
    rng = np.random.default_rng(0)
    # Outcomes without relation to full scores: the response model errs, the mean is trusted more.
    unrelated = dataclasses.replace(evidence, full_scores=rng.permutation(evidence.full_scores))
    assert share_of(unrelated, 10) > share_of(evidence, 10)


def test_gp_lambda_lies_between_mean_and_pirt():
    evidence = make_task(families=FAMILIES, binary=True)
    context, chosen = context_of(evidence)
    mean, pirt, mixed = (
        find_estimator(name)(evidence.outcomes[:, chosen], context)
        for name in ("mean", "pirt", "gp_lambda")
    )
    assert (mixed >= np.minimum(mean, pirt) - 1e-12).all()
    assert (mixed <= np.maximum(mean, pirt) + 1e-12).all()


def test_two_reference_families_are_too_few_to_measure_the_model_and_give_one_half():
    from mteblite.calibrations.gp_lambda import mean_share

    evidence = make_task(families={"a": "a", "b": "b"})
    context, _ = context_of(make_task(families=FAMILIES))
    reference = Reference(evidence.outcomes, evidence.full_scores, evidence.families)
    assert mean_share(dataclasses.replace(context, reference=reference)) == 0.5


# --- as fitted tasks -------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", sorted(NEEDS_REFERENCE))
@pytest.mark.parametrize("calibration", ["linear", "crossfit", "crossfit_offset", "blup"])
def test_fitted_tasks_predict_new_models(estimator, calibration):
    evidence = make_task(families=FAMILIES, n_items=300)
    new = np.arange(len(evidence.models)) == 7
    variant = Variant("anchor", estimator, "strat", calibration)
    fitted = fit_task(evidence.only_models(~new), variant, 30, (0,))
    places = [int(i[1:]) for i in fitted.selection["item_id"]]
    predicted = fitted.predict(evidence.outcomes[7, places])
    assert predicted == pytest.approx(evidence.full_scores[7], abs=0.12)
    again = FittedTask.from_tables(
        task=fitted.task, task_type=fitted.task_type, kind=fitted.kind, items=fitted.items,
        selection=fitted.selection, item_parameters=fitted.item_parameters,
        calibration=fitted.calibration_row(), reference=fitted.reference,
    )  # fmt: skip
    assert again.predict(evidence.outcomes[7, places]) == predicted
    released = fitted_from_json(release_json(fitted))
    assert released.predict(evidence.outcomes[7, places]) == predicted


def test_estimators_of_the_full_score_are_not_calibrated_again_by_default():
    evidence = make_task(families=FAMILIES)
    fit = fit_items(evidence)
    selection = select("anchor", evidence, fit, 20, (0,))
    assert calibrate_task(evidence, fit, selection, "switch").calibration_method == "none"
    assert calibrate_task(evidence, fit, selection, "greg").calibration_method == "linear"
    same = dataclasses.replace(evidence, full_scores=np.full(len(evidence.models), 0.5))
    fallen_back = calibrate_task(same, fit_items(same), selection, "switch")
    assert (fallen_back.estimator, fallen_back.calibration_method) == ("mean", "linear")
