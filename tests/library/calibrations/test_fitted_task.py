"""A fitted task predicts from the selection alone and survives its tables."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.fits import fit_task, predicted_by, task_fits
from support.zoo import make_task, mean_statistic

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.fitting import fit_items
from mteblite.selections.token_budget import choose

VARIANT = Variant("anchor", "gp", "anchorset")


def fitted_on(evidence, variant=VARIANT, k=20) -> FittedTask:
    return fit_task(evidence, variant, k, ("suite", 0), statistic=mean_statistic)


def on_selection(fitted: FittedTask, row: np.ndarray) -> np.ndarray:
    return row[[int(i[1:]) for i in fitted.selection["item_id"]]]


@pytest.mark.parametrize("task_type", ["Retrieval", "STS"])
def test_round_trip_through_tables(task_type):
    evidence = make_task(task_type=task_type)
    fitted = fitted_on(evidence)
    again = FittedTask.from_tables(
        task=fitted.task,
        task_type=fitted.task_type,
        kind=fitted.kind,
        items=fitted.items.sample(frac=1, random_state=0),
        selection=fitted.selection.sample(frac=1, random_state=0),
        item_parameters=fitted.item_parameters.sample(frac=1, random_state=0),
        calibration=fitted.calibration_row(),
        statistic=mean_statistic,
    )
    rows = evidence.outcomes if fitted.kind == "per_item" else evidence.observations
    for row in rows[:5]:
        observed = on_selection(fitted, row)
        assert predicted_by(again, observed) == predicted_by(fitted, observed)
    assert all(np.isscalar(v) for v in fitted.calibration_row().values())


def test_calibration_row_names_what_was_done():
    row = fitted_on(make_task()).calibration_row()
    assert (row["method"], row["estimator"]) == ("linear", "gp")
    assert fitted_on(make_task(task_type="STS")).calibration_row()["estimator"] == "set_statistic"


def test_reference_models_are_predicted_well():
    evidence = make_task(n_items=400)
    fitted = fitted_on(evidence, k=50)
    predicted = [predicted_by(fitted, on_selection(fitted, row)) for row in evidence.outcomes]
    assert np.abs(predicted - evidence.full_scores).mean() < 0.05
    assert np.corrcoef(predicted, evidence.full_scores)[0, 1] > 0.9


def test_stages_one_by_one_give_the_same():
    evidence = make_task()
    fit = fit_items(evidence)
    selection = choose("anchor", evidence, fit, 20, ("suite", 0))
    fits = task_fits(evidence, 20, ("suite", 0))
    fits.use(fit, "anchor", selection.sample(frac=1, random_state=0))
    stepwise, whole = fits.fitted(VARIANT), fitted_on(evidence)
    assert stepwise.calibration_row() == whole.calibration_row()
    pd.testing.assert_frame_equal(stepwise.selection, whole.selection)


@pytest.mark.parametrize(("task_type", "low"), [("Retrieval", 0.0), ("Summarization", -1.0)])
def test_predictions_are_clipped_to_the_legal_range(task_type, low):
    evidence = make_task(task_type=task_type)
    shifted = dataclasses.replace(evidence, full_scores=evidence.full_scores - 1.0)
    fitted = fitted_on(shifted)
    assert predicted_by(fitted, np.zeros(20)) >= low
    assert (predicted_by(fitted, np.zeros(20)) == 0.0) == (low == 0.0)


def test_without_spread_of_abilities_everything_still_works():
    evidence = make_task()
    same = dataclasses.replace(evidence, full_scores=np.full(len(evidence.models), 0.5))
    fitted = fitted_on(same, Variant("fisher", "pirt", "strat"))
    assert fitted.estimator == "mean"
    assert fitted.selection["method"].iloc[0] == "strat"
    # All reference models score 0.5, so the line is as flat as the guard allows.
    assert predicted_by(fitted, on_selection(fitted, evidence.outcomes[0])) == pytest.approx(
        0.5, abs=0.1
    )


def test_one_reference_model_gives_an_offset():
    evidence = make_task()
    one = evidence.only_models(np.arange(len(evidence.models)) == 0)
    fitted = fitted_on(one)
    assert fitted.calibration.slope == 1.0
    observed = on_selection(fitted, one.outcomes[0])
    assert predicted_by(fitted, observed) == pytest.approx(one.full_scores[0])


def test_statistic_undefined_for_some_models_calibrates_on_the_others():
    def picky(task_type, observations, items, weights):
        value = mean_statistic(task_type, observations, items, weights)
        return value if value > 0.4 else float("nan")

    evidence = make_task(task_type="Clustering")
    fitted = fit_task(evidence, VARIANT, 20, (), statistic=picky)
    assert 0 < fitted.calibration.n_models < len(evidence.models)
    assert np.isnan(predicted_by(fitted, np.zeros((20, 1))))
    with pytest.raises(ValueError, match="Sim: none of"):
        fit_task(evidence, VARIANT, 20, (), statistic=lambda *_: float("nan"))


def test_wrong_number_of_outcomes_is_an_error():
    with pytest.raises(ValueError, match="Sim: got outcomes on 19 items; the selection has 20"):
        predicted_by(fitted_on(make_task()), np.zeros(19))
