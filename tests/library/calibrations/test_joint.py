"""Joint calibration: conditioning against the textbook, covariance against known factors."""

from __future__ import annotations

import numpy as np
import pytest

from mteblite.calibrations.blup import Blup, JointData
from mteblite.calibrations.cross_fitting import cross_fitted, family_groups, inner_folds
from mteblite.calibrations.gaussian import condition
from mteblite.calibrations.linear import fit_calibration
from mteblite.calibrations.task_covariance import (
    MIN_UNIQUENESS,
    _fill,
    _patterns,
    fit_task_covariance,
    with_factors,
)


def random_covariance(rng: np.random.Generator, size: int) -> np.ndarray:
    root = rng.normal(size=(size, size))
    return root @ root.T + np.eye(size)


def test_conditioning_equals_the_conditional_of_the_joint_gaussian():
    rng = np.random.default_rng(0)
    for _ in range(20):
        size = int(rng.integers(1, 7))
        mean, covariance = rng.normal(size=size), random_covariance(rng, size)
        noise = rng.random(size)
        z = rng.normal(size=size)
        # (u, z) is Gaussian with blocks C, C, C + D: condition it by inverting the precision.
        joint = np.block([[covariance, covariance], [covariance, covariance + np.diag(noise)]])
        precision = np.linalg.inv(joint + 1e-12 * np.eye(2 * size))
        posterior = np.linalg.inv(precision[:size, :size])
        expected = mean - posterior @ precision[:size, size:] @ (z - mean)
        found = condition(z, noise, mean, covariance)
        assert found[0] == pytest.approx(expected, abs=1e-6)
        assert found[1] == pytest.approx(posterior, abs=1e-6)


def test_missing_components_are_predicted_from_the_others():
    rng = np.random.default_rng(1)
    mean, covariance, noise = rng.normal(size=4), random_covariance(rng, 4), rng.random(4)
    z = rng.normal(size=4)
    z[[1, 3]] = np.nan
    found = condition(z, noise, mean, covariance)
    seen = [0, 2]
    spread = covariance[np.ix_(seen, seen)] + np.diag(noise[seen])
    gain = covariance[:, seen] @ np.linalg.inv(spread)
    assert found[0] == pytest.approx(mean + gain @ (z[seen] - mean[seen]))
    # No noise known is as good as not observed; nothing observed leaves the prior.
    unknown = np.array([noise[0], np.nan, noise[2], np.nan])
    again = condition(np.nan_to_num(z), unknown, mean, covariance)
    assert again[0] == pytest.approx(found[0])
    nothing = condition(np.full(4, np.nan), noise, mean, covariance)
    assert nothing[0] == pytest.approx(mean)
    assert nothing[1] == pytest.approx(covariance)


def test_a_broken_task_is_capped():
    covariance = np.full((3, 3), 0.8) + 0.2 * np.eye(3)
    z = np.array([0.1, 0.0, 500.0])
    capped = condition(z, np.full(3, 0.1), np.zeros(3), covariance, cap=4.0)[0]
    assert capped[0] < 3.0 < condition(z, np.full(3, 0.1), np.zeros(3), covariance)[0][0]


def test_an_odd_model_keeps_what_was_measured_of_its_odd_task():
    """Measured well and far from all others: the measurement counts, not the others' spread."""
    covariance = 0.8 * np.ones((3, 3)) + 0.2 * np.eye(3)
    z = np.array([0.3, 0.2, -9.0])
    found, posterior = condition(z, np.full(3, 0.01), np.zeros(3), covariance, cap=4.0)
    assert found[2] == pytest.approx(-9.0, abs=0.1)
    assert posterior[2, 2] == pytest.approx(0.01, rel=0.05)
    # The others go on nearly as if it had not been measured.
    without = condition(np.array([0.3, 0.2, np.nan]), np.full(3, 0.01), np.zeros(3), covariance)[0]
    assert found[:2] == pytest.approx(without[:2], abs=0.05)
    # Within the cap nothing changes.
    z = np.array([0.3, 0.2, -1.0])
    plain = condition(z, np.full(3, 0.01), np.zeros(3), covariance)
    capped = condition(z, np.full(3, 0.01), np.zeros(3), covariance, cap=4.0)
    assert capped[0] == pytest.approx(plain[0])
    assert capped[1] == pytest.approx(plain[1])


# --- covariance ------------------------------------------------------------------------------


def factor_scores(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores of n models on 12 tasks with two factors, and their covariance."""
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(99).normal(size=(12, 2))
    scores = rng.normal(size=(n, 2)) @ loadings.T + 0.7 * rng.normal(size=(n, 12))
    return scores, loadings @ loadings.T + 0.49 * np.eye(12)


def test_covariance_of_many_models_is_recovered_and_factors_help_few_models():
    scores, truth = factor_scores(4000)
    found = fit_task_covariance(scores, [str(i) for i in range(4000)])
    assert found.covariance == pytest.approx(truth, abs=0.08 * np.abs(truth).max())
    errors = {"factors": 0.0, "sample": 0.0}
    for seed in range(5):
        few, _ = factor_scores(15, seed)
        fitted = fit_task_covariance(few, [str(i) for i in range(15)])
        off = ~np.eye(12, dtype=bool)
        errors["factors"] += np.abs(np.linalg.inv(fitted.covariance) - np.linalg.inv(truth))[
            off
        ].mean()
        sample = np.cov(few.T) + 1e-3 * np.eye(12)
        errors["sample"] += np.abs(np.linalg.inv(sample) - np.linalg.inv(truth))[off].mean()
    assert errors["factors"] < 0.5 * errors["sample"]


def test_factors_keep_variances_and_leave_every_task_its_own_share():
    covariance = random_covariance(np.random.default_rng(3), 9)
    found = with_factors(covariance, 3)
    assert np.diag(found) == pytest.approx(np.diag(covariance))
    assert np.linalg.eigvalsh(found).min() > 0
    perfect = with_factors(np.ones((4, 4)), 1)
    assert perfect[0, 1] == pytest.approx(1 - MIN_UNIQUENESS, abs=1e-6)
    assert with_factors(covariance, 0) == pytest.approx(np.diag(np.diag(covariance)))


def test_families_count_once():
    scores, _ = factor_scores(30)
    copies = np.concatenate([scores, np.repeat(scores[:1], 5, axis=0)])
    names = [str(i) for i in range(30)]
    once = fit_task_covariance(scores, names)
    family = fit_task_covariance(copies, [*names, *["0"] * 5])
    assert family.mean == pytest.approx(once.mean)
    assert family.covariance == pytest.approx(once.covariance)
    assert family.n_effective == 30


def test_missing_scores_are_filled_by_their_relation_to_others():
    scores, truth = factor_scores(600, 4)
    holed = scores.copy()
    # Only the better models lack task 0: leaving them out would bias its mean.
    better = scores[:, 1:].mean(axis=1) > 0.3
    holed[better, 0] = np.nan
    found = fit_task_covariance(holed, [str(i) for i in range(600)])
    naive = np.nanmean(holed[:, 0])
    full = scores[:, 0].mean()
    assert abs(found.mean[0] - full) < 0.4 * abs(naive - full)
    assert found.covariance[0, 0] == pytest.approx(truth[0, 0], rel=0.3)
    with pytest.raises(ValueError, match="task number 2 has no full score"):
        fit_task_covariance(
            np.where(np.arange(12) == 2, np.nan, scores), [str(i) for i in range(600)]
        )


def test_what_is_filled_in_is_the_conditional_of_each_row():
    rng = np.random.default_rng(8)
    mean, covariance = rng.normal(size=5), random_covariance(rng, 5)
    values, weights = rng.normal(size=(12, 5)), rng.random(12) + 0.5
    values[rng.random(values.shape) < 0.4] = np.nan
    values[:3] = [[1, np.nan, 2, np.nan, 3], [4, np.nan, 5, np.nan, 6], [np.nan] * 5]
    seen = np.isfinite(values)
    filled, doubt = _fill(values, _patterns(seen), weights, mean, covariance)
    rows = [condition(row, np.zeros(5), mean, covariance) for row in values]
    np.testing.assert_allclose(filled, np.where(seen, values, [r[0] for r in rows]))
    expected = np.average([r[1] for r in rows], axis=0, weights=weights)
    np.testing.assert_allclose(doubt, expected, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_very_few_families_still_give_a_proper_covariance(n):
    scores, _ = factor_scores(n)
    found = fit_task_covariance(scores, [str(i) for i in range(n)])
    assert np.linalg.eigvalsh(found.covariance).min() > 0


# --- layers ----------------------------------------------------------------------------------


def joint_data(n: int = 60, noise: float = 0.8, seed: int = 0) -> JointData:
    scores, _ = factor_scores(n, seed)
    rng = np.random.default_rng(seed + 50)
    return JointData(
        cross_fitted=scores + noise * rng.normal(size=scores.shape),
        scores=scores,
        families=tuple(str(i) for i in range(n)),
        public_scores=np.empty((0, 12)),
        public_families=(),
    )


def test_blup_beats_its_estimates_and_its_covariance_is_honest():
    data = joint_data()
    truth, _ = factor_scores(2000, 77)
    estimates = truth + 0.8 * np.random.default_rng(5).normal(size=truth.shape)
    found = Blup.fit(data).predict(estimates)
    error = found.mean - truth
    assert (error**2).mean() < 0.7 * ((estimates - truth) ** 2).mean()
    sd = np.sqrt(np.einsum("mtt->mt", found.covariance))
    assert (np.abs(error) < 1.645 * sd).mean() == pytest.approx(0.9, abs=0.04)
    macro, macro_sd = found.combined(np.full(12, 1 / 12))
    inside = np.abs(macro - truth.mean(axis=1)) < 1.645 * macro_sd
    assert inside.mean() == pytest.approx(0.9, abs=0.07)


def test_noise_is_the_mean_square_of_cross_fitted_residuals():
    data = joint_data(noise=0.5)
    expected = ((data.cross_fitted - data.scores) ** 2).mean(axis=0)
    assert Blup.fit(data).noise == pytest.approx(expected)


def test_public_models_sharpen_the_covariance():
    few = joint_data(8)
    public, _ = factor_scores(150, 21)
    names = tuple(f"p{i}" for i in range(150))
    more = JointData(few.cross_fitted, few.scores, few.families, public, names)
    truth, _ = factor_scores(400, 78)
    estimates = truth + 0.8 * np.random.default_rng(6).normal(size=truth.shape)
    errors = [np.abs(Blup.fit(d).predict(estimates).mean - truth).mean() for d in (few, more)]
    assert errors[1] < errors[0]


def test_a_model_without_some_tasks_still_gets_all_of_them():
    data = joint_data()
    truth, _ = factor_scores(300, 79)
    estimates = truth + 0.3 * np.random.default_rng(7).normal(size=truth.shape)
    estimates[:, 4:] = np.nan
    found = Blup.fit(data).predict(estimates).mean
    prior = np.abs(truth[:, 4:] - truth[:, 4:].mean(axis=0)).mean()
    assert np.abs(found[:, 4:] - truth[:, 4:]).mean() < 0.75 * prior


def test_inverse_line_does_not_shrink_and_shifts_without_a_relation():
    rng = np.random.default_rng(8)
    truth = rng.normal(size=3000)
    seen = 0.2 + 0.5 * truth + 0.4 * rng.normal(size=3000)
    line = fit_calibration("inverse", seen, truth)
    assert (line.slope, line.intercept) == pytest.approx((2.0, -0.4), abs=0.1)
    assert fit_calibration("inverse", rng.normal(size=50), rng.normal(size=50)).slope == 1.0


# --- cross-fitting ---------------------------------------------------------------------------

FAMILIES = [f"f{i // 2}" for i in range(24)]


@pytest.mark.parametrize("held", [[], [0, 1], [5], list(range(0, 24, 2)), list(range(8))])
def test_inner_folds_partition_the_training_set_and_never_see_held_out_families(held):
    train = np.ones(24, dtype=bool)
    train[held] = False
    told = np.zeros(24, dtype=int)
    families = np.array(FAMILIES)
    for fits, predicted in inner_folds(train, FAMILIES):
        assert not (fits & ~train).any()
        assert not (fits & predicted).any()
        assert not set(families[fits]) & set(families[predicted])
        told += predicted
    assert told.tolist() == train.astype(int).tolist()


def test_folds_of_one_group_share_inner_fits():
    masks = set()
    for family in sorted(set(FAMILIES)):
        train = np.array([f != family for f in FAMILIES])
        masks |= {fits.tobytes() for fits, _ in inner_folds(train, FAMILIES)}
    # 15 pairs of 6 groups and 6 groups alone, not 12 families times 5 or 6 folds.
    assert len(masks) == 21
    assert sorted(np.bincount(family_groups(FAMILIES))) == [4] * 6


def test_cross_fitted_estimates_come_from_fits_without_the_model():
    truth = np.arange(24.0)

    def leaky(train: np.ndarray) -> np.ndarray:
        return np.where(train, truth, -1.0)

    train = np.ones(24, dtype=bool)
    train[:2] = False
    found = cross_fitted(leaky, train, FAMILIES)
    assert np.isnan(found[:2]).all()
    assert (found[2:] == -1.0).all()
    # Two models of one family cannot be left out: the fit on both steps in.
    assert cross_fitted(leaky, np.arange(24) < 2, FAMILIES)[:2].tolist() == [0.0, 1.0]
