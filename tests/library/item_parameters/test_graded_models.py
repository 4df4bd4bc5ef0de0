"""Response models whose variance follows the mean: recovery, references, degenerate items."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.zoo import make_task

from mteblite.item_parameters import fractional_logit, heteroskedastic, linear_gaussian
from mteblite.item_parameters.dispersion import unit_variance
from mteblite.item_parameters.fitting import RESPONSE_MODELS, fit_from_tables, fit_items

MODELS = {"heteroskedastic": heteroskedastic, "fractional_logit": fractional_logit}


def beta_outcomes(mean: np.ndarray, phi: np.ndarray, seed: int = 0) -> np.ndarray:
    """Beta outcomes with variance phi * mean * (1 - mean)."""
    size = 1.0 / phi - 1.0
    return np.random.default_rng(seed).beta(mean * size, (1 - mean) * size)


def test_fractional_logit_recovers_curves_and_dispersion():
    theta = np.random.default_rng(1).normal(size=6000)
    slope, intercept = np.array([0.5, 1.0, 1.5, -0.7]), np.array([0.5, 0.0, -1.0, 0.3])
    phi = np.array([0.1, 0.3, 0.5, 0.2])
    mean = 1 / (1 + np.exp(-(theta[:, None] * slope + intercept)))
    found = fractional_logit.fit(theta, beta_outcomes(mean, phi), np.ones(6000))
    assert found.slope == pytest.approx(slope, abs=0.06)
    assert found.intercept == pytest.approx(intercept, abs=0.06)
    assert fractional_logit.phi_of(found) == pytest.approx(phi, rel=0.1)


def test_fractional_logit_equals_weighted_penalised_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    theta = np.linspace(-2, 2, 30)
    y = np.clip(0.5 + 0.2 * theta + 0.1 * np.sin(7 * theta), 0, 1)
    found = fractional_logit.fit(theta, y[:, None], np.ones(30))
    # A share y is y of a success and 1 - y of a failure.
    design = np.column_stack([theta, np.full(30, np.sqrt(10))])
    reference = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=5000)
    reference.fit(
        np.tile(design, (2, 1)), np.repeat([1, 0], 30), sample_weight=np.r_[y, 1 - y] + 1e-300
    )
    slope, intercept = reference.coef_[0]
    assert found.slope[0] == pytest.approx(slope, abs=1e-4)
    assert found.intercept[0] == pytest.approx(intercept * np.sqrt(10), abs=1e-4)


def test_heteroskedastic_recovers_lines_and_dispersion():
    theta = np.random.default_rng(2).normal(size=6000).clip(-2.5, 2.5)
    slope, intercept, phi = np.array([0.1, 0.05]), np.array([0.5, 0.7]), np.array([0.2, 0.4])
    mean = theta[:, None] * slope + intercept
    found = heteroskedastic.fit(theta, beta_outcomes(mean, phi), np.ones(6000))
    assert found.slope == pytest.approx(slope, abs=0.02)
    assert found.intercept == pytest.approx(intercept, abs=0.02)
    assert heteroskedastic.phi_of(found) == pytest.approx(phi, rel=0.1)


@pytest.mark.parametrize("name", MODELS)
def test_information_is_slope_squared_over_variance(name):
    module, theta = MODELS[name], np.array([-1.0, 0.0, 2.0])
    parameters = fit_items(make_task(n_items=12), name).parameters
    step = 1e-6
    slope = (module_expected(name, parameters, theta + step)
             - module_expected(name, parameters, theta - step)) / (2 * step)  # fmt: skip
    mean = module_expected(name, parameters, theta)
    inside = (mean > 0.03) & (mean < 0.97)
    variance = module.phi_of(parameters) * unit_variance(mean)
    expected = slope**2 / variance
    assert module.information(parameters, theta)[inside] == pytest.approx(
        expected[inside], rel=1e-4
    )
    assert np.isfinite(module.information(parameters, theta)).all()


def module_expected(name, parameters, theta):
    return RESPONSE_MODELS[name].expected(parameters, theta)


@pytest.mark.parametrize("name", MODELS)
def test_abilities_are_roots_of_the_quasi_score(name):
    evidence = make_task(n_items=60)
    fit = fit_items(evidence, name)
    outcomes = evidence.outcomes[:4].copy()
    outcomes[0, :9] = np.nan
    theta = RESPONSE_MODELS[name].ability(fit.parameters, outcomes)
    mean = module_expected(name, fit.parameters, theta)
    phi = MODELS[name].phi_of(fit.parameters)
    if name == "heteroskedastic":
        score = fit.parameters.slope * (outcomes - mean) / (phi * unit_variance(mean))
    else:
        score = fit.parameters.slope * (outcomes - mean) / phi
    assert np.nansum(score, axis=1) - theta == pytest.approx(np.zeros(4), abs=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_degenerate_items_stay_finite_and_unseen_ones_are_nan(name):
    theta = np.linspace(-1.5, 1.5, 12)
    outcomes = np.column_stack([np.zeros(12), np.ones(12), theta > 0, np.full(12, np.nan)])
    found = MODELS[name].fit(theta, outcomes.astype(float), np.ones(12))
    assert found.n_models.tolist() == [12, 12, 12, 0]
    for values in (found.slope, found.intercept, found.residual_sd):
        assert np.isfinite(values[:3]).all()
        assert np.isnan(values[3])
    found_theta = RESPONSE_MODELS[name].ability(found, outcomes.astype(float))
    assert np.isfinite(found_theta).all()
    assert np.abs(found_theta).max() < 5


@pytest.mark.parametrize("name", MODELS)
def test_graded_models_survive_their_tables_and_refuse_negative_outcomes(name):
    evidence = make_task(n_items=30)
    fit = fit_items(evidence, name)
    abilities = fit.abilities.assign(theta_mean=fit.theta_mean, theta_sd=fit.theta_sd)
    again = fit_from_tables(fit.item_parameters, abilities)
    assert again.response_model == name
    assert MODELS[name].phi_of(again.parameters) == pytest.approx(
        MODELS[name].phi_of(fit.parameters)
    )
    shifted = dataclasses.replace(evidence, outcomes=evidence.outcomes - 0.5)
    with pytest.raises(ValueError, match=f"{name} needs outcomes in"):
        fit_items(shifted, name)


def test_items_that_better_models_get_wrong_are_reported():
    evidence = make_task(n_items=50)
    outcomes = evidence.outcomes.copy()
    outcomes[:, [3, 8]] = 1.0 - evidence.full_scores[:, None]
    fit = fit_items(dataclasses.replace(evidence, outcomes=outcomes))
    slopes = linear_gaussian.fit(fit.ability.theta, outcomes, np.ones(len(outcomes))).slope
    assert {"i00003", "i00008"} <= set(fit.negative_items)
    assert len(fit.negative_items) == (slopes < 0).sum()
