"""Estimators by hand and by brute force; calibration lines with their guards."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.fits import estimate
from support.zoo import make_task, mean_statistic

from mteblite.calibrations.linear import fit_calibration
from mteblite.calibrations.registry import AIMS_AT_FULL_SCORE, ESTIMATORS, estimate_set
from mteblite.calibrations.task_fit import reference_of
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters import linear_gaussian, two_pl
from mteblite.item_parameters.fitting import fit_items
from mteblite.item_parameters.response_model import ItemParameters
from mteblite.lines import fit_lines
from mteblite.selections.token_budget import choose

SELECTION = pd.DataFrame({"item_id": ["c", "a"], "weight": [0.25, 0.75]})
ITEMS = pd.DataFrame({"item_id": ["a", "b", "c", "d"], "pool_weight": [0.4, 0.3, 0.2, 0.1]})


def parameters(model: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "item_id": ["d", "c", "b", "a"],  # another order than the pool's
            "response_model": model,
            "slope": [0.4, 0.3, 0.2, 0.1],
            "intercept": [0.9, 0.5, 0.4, 0.6],
            "residual_sd": [0.1, 0.2, 0.1, 0.3],
            "n_models": 9,
        }
    )


def test_mean_weighs_by_selection_and_skips_missing_outcomes():
    args = (SELECTION, parameters("two_pl"), ITEMS)
    assert estimate("mean", np.array([1.0, 0.2]), *args) == pytest.approx(0.25 + 0.75 * 0.2)
    assert estimate("mean", np.array([np.nan, 0.2]), *args) == pytest.approx(0.2)
    assert np.isnan(estimate("mean", np.array([np.nan, np.nan]), *args))


@pytest.mark.parametrize("name", ["linear_gaussian", "two_pl"])
def test_pirt_keeps_what_it_saw_and_predicts_the_rest(name):
    outcomes = np.array([1.0, 0.0])  # of c and a
    model = {"linear_gaussian": linear_gaussian, "two_pl": two_pl}[name]
    chosen = ItemParameters(
        np.array([0.3, 0.1]), np.array([0.5, 0.6]), np.array([0.2, 0.3]), np.array([9, 9])
    )
    theta = float(model.ability(chosen, outcomes[None])[0])
    eta_b, eta_d = 0.2 * theta + 0.4, 0.4 * theta + 0.9
    if name == "two_pl":
        eta_b, eta_d = 1 / (1 + np.exp(-eta_b)), 1 / (1 + np.exp(-eta_d))
    expected = 0.2 * 1.0 + 0.4 * 0.0 + 0.3 * eta_b + 0.1 * min(eta_d, 1.0)
    found = estimate("pirt", outcomes, SELECTION, parameters(name), ITEMS)
    assert found == pytest.approx(expected)
    mean = estimate("mean", outcomes, SELECTION, parameters(name), ITEMS)
    gp = estimate("gp", outcomes, SELECTION, parameters(name), ITEMS)
    assert gp == pytest.approx((mean + found) / 2)


def test_pirt_clips_predictions_to_the_legal_range():
    steep = parameters("linear_gaussian").assign(intercept=[5.0, 0.5, -5.0, 0.6])
    outcomes = np.array([0.5, 0.6])  # exactly as expected, so theta is 0
    found = estimate("pirt", outcomes, SELECTION, steep, ITEMS)
    assert found == pytest.approx(0.2 * 0.5 + 0.4 * 0.6 + 0.1 * 1.0)
    found = estimate("pirt", outcomes, SELECTION, steep, ITEMS, bounds=(-1.0, 1.0))
    assert found == pytest.approx(0.2 * 0.5 + 0.4 * 0.6 + 0.1 * 1.0 - 0.3)


def test_pirt_leaves_items_without_parameters_out():
    holed = parameters("linear_gaussian")
    holed.loc[holed["item_id"] == "d", ["slope", "intercept", "residual_sd"]] = np.nan
    outcomes = np.array([0.5, 0.6])
    found = estimate("pirt", outcomes, SELECTION, holed, ITEMS)
    assert found == pytest.approx((0.2 * 0.5 + 0.4 * 0.6 + 0.3 * 0.4) / 0.9)
    assert np.isnan(estimate("pirt", np.full(2, np.nan), SELECTION, holed, ITEMS))


@pytest.mark.parametrize("estimator", sorted(set(ESTIMATORS) - AIMS_AT_FULL_SCORE))
@pytest.mark.parametrize("binary", [False, True])
def test_whole_pool_gives_the_pool_mean_exactly(estimator, binary):
    evidence = make_task(n_items=60, binary=binary, cells=3)
    fit = fit_items(evidence)
    selection = choose("anchor", evidence, fit, 60, ())
    weights = evidence.items["pool_weight"].to_numpy()
    for outcomes in evidence.outcomes[:4]:
        found = estimate(
            estimator, outcomes, selection, fit.item_parameters, evidence.items,
            reference=reference_of(evidence),
        )  # fmt: skip
        assert found == pytest.approx(float(outcomes @ weights), abs=1e-12)


def test_errors_of_estimates():
    with pytest.raises(ValueError, match="'median' is unknown; allowed: mean, pirt, gp"):
        estimate("median", np.zeros(2), SELECTION, parameters("two_pl"), ITEMS)
    with pytest.raises(ValueError, match="'a' is not in the pool"):
        estimate("mean", np.zeros(2), SELECTION, parameters("two_pl"), ITEMS.iloc[1:])
    with pytest.raises(ValueError, match="got 3 observations for 4 selected items"):
        estimate_set("STS", np.zeros((3, 1)), ITEMS, np.ones(4), statistic=mean_statistic)


# --- calibration -----------------------------------------------------------------------------


def test_linear_calibration_is_least_squares():
    rng = np.random.default_rng(0)
    x = rng.random(20)
    y = 0.1 + 0.7 * x + 0.05 * rng.normal(size=20)
    line = fit_calibration("linear", x, y)
    slope, intercept = np.polyfit(x, y, 1)
    assert (line.slope, line.intercept) == pytest.approx((slope, intercept))
    residual = y - np.polyval([slope, intercept], x)
    assert line.residual_sd == pytest.approx(np.sqrt((residual**2).sum() / 18))
    assert line.n_models == 20
    assert line.apply(x).mean() == pytest.approx(y.mean())


@pytest.mark.parametrize(("factor", "slope"), [(9.0, 4.0), (-1.0, 0.25), (0.01, 0.25)])
def test_slopes_are_clipped_and_the_line_still_passes_the_means(factor, slope):
    x = np.linspace(0.4, 0.5, 6)
    y = 0.3 + factor * (x - 0.4)
    line = fit_calibration("linear", x, y)
    assert line.slope == slope
    assert line.apply(x).mean() == pytest.approx(y.mean())


def test_without_spread_or_with_two_models_only_the_offset_is_fitted():
    line = fit_calibration("linear", np.full(5, 0.4), np.array([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert (line.slope, line.intercept) == pytest.approx((1.0, -0.1))
    line = fit_calibration("linear", np.array([0.1, 0.9]), np.array([0.5, 0.6]))
    assert (line.slope, line.intercept) == pytest.approx((1.0, 0.05))
    line = fit_calibration("linear", np.array([0.1]), np.array([0.5]))
    assert line.intercept == pytest.approx(0.4)
    assert np.isnan(line.residual_sd)


def test_undefined_estimates_and_missing_scores_are_left_out():
    x = np.array([0.1, 0.2, 0.4, np.nan, 0.9])
    y = np.array([0.2, 0.4, 0.8, 0.5, np.nan])
    line = fit_calibration("linear", x, y)
    assert (line.slope, line.n_models) == (pytest.approx(2.0), 3)
    with pytest.raises(ValueError, match="none of 5 reference models has both"):
        fit_calibration("linear", np.full(5, np.nan), y)


def test_other_calibrations():
    x, y = np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.5, 0.7])
    offset = fit_calibration("offset", x, y)
    assert (offset.slope, offset.intercept) == pytest.approx((1.0, 0.3))
    none = fit_calibration("none", x, y)
    assert (none.slope, none.intercept) == (1.0, 0.0)
    assert none.residual_sd == pytest.approx(np.sqrt(np.mean((y - x) ** 2)))


def test_many_lines_at_once_equal_single_lines():
    rng = np.random.default_rng(1)
    x, y = rng.random((7, 9)), rng.random(9)
    x[0, 3], x[1] = np.nan, 0.5
    slope, intercept = fit_lines(x, y)
    for row in range(7):
        line = fit_calibration("linear", x[row], y)
        assert (line.slope, line.intercept) == pytest.approx((slope[row], intercept[row]))


def test_variants_are_written_as_they_are_read():
    for text in ("anchor/mean/anchorset", "fisher/gp/strat", "random/pirt/random+offset"):
        assert str(Variant.parse(text)) == text
    with pytest.raises(ValueError, match="has 2 parts"):
        Variant.parse("anchor/mean")
    with pytest.raises(ValueError, match="selection 'ancor' is unknown"):
        Variant.parse("ancor/mean/strat")
    with pytest.raises(ValueError, match="calibration 'cubic' is unknown"):
        Variant.parse("anchor/mean/strat+cubic")
