"""Abilities and item models against independent references."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.zoo import make_task, shuffled

from mteblite.item_parameters import linear_gaussian, two_pl
from mteblite.item_parameters.abilities import standardize
from mteblite.item_parameters.fitting import fit_from_tables, fit_items, is_binary


def test_abilities_are_standardised_with_population_sd_and_skip_missing_scores():
    found = standardize(np.array([0.2, 0.4, 0.6, np.nan]))
    assert found.mean == pytest.approx(0.4)
    assert found.sd == pytest.approx(np.std([0.2, 0.4, 0.6]))
    assert found.theta[:3].std() == pytest.approx(1.0)
    assert np.isnan(found.theta[3])
    assert found.usable


@pytest.mark.parametrize("values", [[0.5, 0.5, 0.5, 0.5], [0.2, 0.6], [0.3]])
def test_abilities_without_spread_or_models_are_zero_and_flagged(values):
    found = standardize(np.array(values))
    assert not found.usable
    assert (found.theta == 0).all()


def test_no_full_score_at_all_is_an_error():
    with pytest.raises(ValueError, match="no reference model has a full score"):
        standardize(np.array([np.nan, np.inf]))


def test_two_pl_equals_penalised_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    evidence = make_task(n_items=30, binary=True)
    fit = fit_items(evidence)
    assert fit.response_model == "two_pl"
    # A constant column scaled by sqrt(10) gives scikit-learn our penalties: 1 on the slope and
    # 0.1 on the intercept.
    scale = 1.0 / np.sqrt(two_pl.INTERCEPT_PENALTY)
    design = np.column_stack([fit.ability.theta, np.full(len(fit.models), scale)])
    for item in range(30):
        y = evidence.outcomes[:, item]
        if y.min() == y.max():
            continue
        reference = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=5000)
        slope, intercept = reference.fit(design, y).coef_[0]
        assert fit.parameters.slope[item] == pytest.approx(slope, abs=1e-4)
        assert fit.parameters.intercept[item] == pytest.approx(intercept * scale, abs=1e-4)


def test_two_pl_gradient_vanishes_under_separation_and_for_constant_items():
    theta = np.linspace(-1.5, 1.5, 20)
    outcomes = np.column_stack([theta > 0, theta < 0, theta > 9, theta < 9]).astype(float)
    found = two_pl.fit(theta, outcomes)
    p = two_pl.expected(found, theta)
    gradient_slope = theta @ (outcomes - p) - two_pl.SLOPE_PENALTY * found.slope
    gradient_intercept = (outcomes - p).sum(axis=0) - two_pl.INTERCEPT_PENALTY * found.intercept
    assert np.abs(gradient_slope).max() < 1e-6
    assert np.abs(gradient_intercept).max() < 1e-6
    assert found.slope[0] > 0 > found.slope[1]
    assert np.abs(found.slope[2:]).max() < 1e-6


def test_two_pl_recovers_known_parameters():
    rng = np.random.default_rng(0)
    theta = rng.normal(size=4000)
    slope, intercept = np.array([0.5, 1.0, 2.0, -1.0]), np.array([1.0, 0.0, -1.0, 0.5])
    p = 1 / (1 + np.exp(-(theta[:, None] * slope + intercept)))
    found = two_pl.fit(theta, (rng.random(p.shape) < p).astype(float))
    assert found.slope == pytest.approx(slope, abs=0.15)
    assert found.intercept == pytest.approx(intercept, abs=0.15)


# girth 0.8.0, `girth.twopl_mml` (marginal maximum likelihood) on the data of the test below, run
# once with numpy 2.4.6 and scipy 1.17.1: discrimination and difficulty.
GIRTH_SLOPE = [1.2319, 1.3696, 0.6746, 1.4971, 2.0140, 0.9874,
               1.0345, 0.5753, 1.6131, 1.3936, 1.0571, 0.8354]  # fmt: skip
GIRTH_DIFFICULTY = [-1.0210, 0.8619, 1.4634, -0.9631, -0.0846, -0.0163,
                    0.4833, -0.5836, 0.7641, 0.2405, -1.3798, 1.4645]  # fmt: skip


def test_two_pl_agrees_with_girth_and_the_truth():
    rng = np.random.default_rng(20260)
    theta = rng.normal(size=3000)
    theta = (theta - theta.mean()) / theta.std()
    slope, difficulty = rng.uniform(0.6, 2.0, size=12), rng.normal(size=12)
    p = 1 / (1 + np.exp(-slope * (theta[:, None] - difficulty)))
    found = two_pl.fit(theta, (rng.random((3000, 12)) < p).astype(float))
    ours = -found.intercept / found.slope
    # girth does not know the abilities; its slopes are the noisier ones.
    assert found.slope == pytest.approx(np.array(GIRTH_SLOPE), abs=0.2)
    assert ours == pytest.approx(np.array(GIRTH_DIFFICULTY), abs=0.2)
    error, of_girth = np.abs(found.slope - slope), np.abs(np.array(GIRTH_SLOPE) - slope)
    assert error.mean() < of_girth.mean() < 0.1
    assert error.max() < 0.2
    assert np.abs(ours - difficulty).mean() < 0.06


def test_linear_gaussian_equals_ridge_regression_with_free_intercept():
    from sklearn.linear_model import Ridge

    evidence = make_task(n_items=25)
    fit = fit_items(evidence, "linear_gaussian")
    for item in range(25):
        reference = Ridge(alpha=linear_gaussian.SLOPE_RIDGE)
        reference.fit(fit.ability.theta[:, None], evidence.outcomes[:, item])
        assert fit.parameters.slope[item] == pytest.approx(reference.coef_[0])
        assert fit.parameters.intercept[item] == pytest.approx(reference.intercept_)


def test_linear_gaussian_residual_is_shrunk_towards_the_median():
    theta = np.linspace(-1.5, 1.5, 10)
    rng = np.random.default_rng(0)
    outcomes = 0.5 + 0.1 * theta[:, None] + rng.normal(size=(10, 5)) * [0, 0.1, 0.1, 0.1, 0.5]
    found = linear_gaussian.fit(theta, outcomes)
    rss = ((outcomes - linear_gaussian.expected(found, theta)) ** 2).sum(axis=0)
    expected = (rss + 4 * np.median(rss / 8)) / (8 + 4)
    assert found.residual_sd == pytest.approx(np.sqrt(expected))


@pytest.mark.parametrize("model", [linear_gaussian, two_pl])
def test_missing_outcomes_are_left_out(model):
    rng = np.random.default_rng(1)
    theta = rng.normal(size=12)
    outcomes = (rng.random((12, 3)) < 0.6).astype(float)
    outcomes[:4, 0] = np.nan
    outcomes[:, 2] = np.nan
    found = model.fit(theta, outcomes)
    alone = model.fit(theta[4:], outcomes[4:, :1])
    assert found.n_models.tolist() == [8, 12, 0]
    assert found.slope[0] == pytest.approx(alone.slope[0], abs=1e-6)
    assert np.isnan([found.slope[2], found.intercept[2], found.residual_sd[2]]).all()


@pytest.mark.parametrize("model", [linear_gaussian, two_pl])
def test_map_ability_maximises_the_posterior(model):
    from scipy.optimize import minimize_scalar

    evidence = make_task(n_items=40, binary=model is two_pl)
    fit = fit_items(evidence)
    outcomes = evidence.outcomes[:3].copy()
    outcomes[0, :5] = np.nan

    def loss(theta: float, row: np.ndarray) -> float:
        mu = model.expected(fit.parameters, np.array([theta]))[0]
        seen = np.isfinite(row)
        y, mu = row[seen], mu[seen]
        if model is two_pl:
            return float(-(y * np.log(mu) + (1 - y) * np.log(1 - mu)).sum() + theta**2 / 2)
        sd = fit.parameters.residual_sd[seen]
        return float((((y - mu) / sd) ** 2).sum() / 2 + theta**2 / 2)

    found = model.ability(fit.parameters, outcomes)
    for row, theta in zip(outcomes, found, strict=True):
        best = minimize_scalar(loss, args=(row,), bounds=(-6, 6), method="bounded")
        assert theta == pytest.approx(best.x, abs=1e-4)


def test_auto_takes_two_pl_only_if_every_outcome_is_zero_or_one():
    assert is_binary(np.array([[0.0, 1.0], [np.nan, 1.0 + 1e-10]]))
    assert not is_binary(np.array([[0.0, 1.0], [0.5, 1.0]]))
    assert not is_binary(np.array([[np.nan]]))
    assert fit_items(make_task()).response_model == "linear_gaussian"
    assert fit_items(make_task(binary=True)).response_model == "two_pl"
    assert fit_items(make_task(binary=True), "linear_gaussian").response_model == "linear_gaussian"


def test_models_without_a_full_score_or_outcomes_do_not_count():
    evidence = make_task()
    scores, outcomes = evidence.full_scores.copy(), evidence.outcomes.copy()
    scores[0] = np.nan
    outcomes[1] = np.nan
    partial = dataclasses.replace(evidence, full_scores=scores, outcomes=outcomes)
    keep = np.ones(len(scores), dtype=bool)
    keep[:2] = False
    pd.testing.assert_frame_equal(
        fit_items(partial).item_parameters, fit_items(evidence.only_models(keep)).item_parameters
    )
    assert fit_items(partial).models == evidence.models[2:]


def test_fit_does_not_depend_on_model_order_and_survives_its_tables():
    evidence = make_task(n_items=50, binary=True)
    fit, other = fit_items(evidence), fit_items(shuffled(evidence))
    assert fit.parameters.slope == pytest.approx(other.parameters.slope, abs=1e-9)
    rows = fit.item_parameters.sample(frac=1, random_state=0)
    again = fit_from_tables(rows, fit.abilities.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(again.item_parameters, fit.item_parameters)
    pd.testing.assert_frame_equal(again.abilities, fit.abilities)
    assert again.usable


def test_errors_say_what_is_wrong():
    evidence = make_task()
    none = dataclasses.replace(evidence, full_scores=np.full(len(evidence.models), np.nan))
    with pytest.raises(ValueError, match=r"Sim: none of .* has both a full score and outcomes"):
        fit_items(none)
    with pytest.raises(ValueError, match="'rasch' is unknown; allowed: auto, linear_gaussian"):
        fit_items(evidence, "rasch")
    negative = dataclasses.replace(evidence, outcomes=evidence.outcomes - 0.5)
    with pytest.raises(ValueError, match=r"two_pl needs outcomes in \[0, 1\]"):
        fit_items(negative, "two_pl")
    fit_items(negative)
