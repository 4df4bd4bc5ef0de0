"""Metrics against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mteblite.validation.agreement import kendall_tau, kendall_tau_resolvable, pearson
from mteblite.validation.conformal import half_width, held_out_coverage
from mteblite.validation.metrics import validation_metrics


@pytest.mark.parametrize("seed", range(5))
def test_tau_and_pearson_equal_scipy_with_and_without_ties(seed):
    rng = np.random.default_rng(seed)
    for actual, predicted in (
        (rng.random(30), rng.random(30)),
        (rng.integers(5, size=30) / 5, rng.integers(4, size=30) / 4),
    ):
        assert kendall_tau(predicted, actual) == pytest.approx(
            stats.kendalltau(predicted, actual).statistic
        )
        assert pearson(predicted, actual) == pytest.approx(
            stats.pearsonr(predicted, actual).statistic
        )


def test_undefined_metrics_are_nan():
    flat, rising = np.full(4, 0.5), np.arange(4.0)
    for metric in (kendall_tau, pearson):
        assert np.isnan(metric(flat, rising))
        assert np.isnan(metric(rising, flat))
        assert np.isnan(metric(rising[:1], rising[:1]))
        assert np.isnan(metric(rising[:0], rising[:0]))
    assert np.isnan(kendall_tau_resolvable(rising, flat))


def test_resolvable_pairs_by_hand():
    actual = np.array([0.010, 0.013, 0.015, 0.110])  # .015 - .010 is less than .005 in floats
    # Pairs at least .005 apart: (0,2) exactly, (0,3), (1,3), (2,3).
    assert kendall_tau_resolvable(np.array([0.9, 0.1, 0.95, 0.99]), actual) == 1.0
    assert kendall_tau_resolvable(np.array([2.0, 0, 1, 3]), actual) == pytest.approx(2 / 4)
    # A predicted tie counts in the denominator only.
    assert kendall_tau_resolvable(np.array([0.0, 0, 1, 1]), actual) == pytest.approx(3 / 4)


# --- intervals -------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "rank"), [(9, 9), (15, 15), (21, 20), (33, 31)])
def test_conformal_takes_the_rank_the_families_allow(n, rank):
    residuals = np.linspace(0.1, 1.0, n) * np.where(np.arange(n) % 2, -1, 1)
    found = half_width(residuals, np.arange(n))
    assert found.method == "conformal_family"
    assert found.value == pytest.approx(sorted(abs(residuals))[rank - 1])
    assert found.n_families == n


def test_families_count_once_however_many_members_they_have():
    singles = np.linspace(0.01, 0.20, 20)
    names = np.array([*(f"s{i:02d}" for i in range(20)), *["big"] * 4])
    found = half_width(np.array([*singles, 0.3, -0.005, 0.4, 0.001]), names)
    # Mass 0.9 * 22 = 19.8: half of `big` lies below all singles, so 0.5 + 19 singles do not
    # suffice and 0.5 + 20 do.
    assert (found.value, found.n_families) == (pytest.approx(0.20), 21)
    found = half_width(np.array([*singles, 0.3, -0.3, 0.4, 0.3]), names)
    # No member of `big` is small: 20 singles are enough; 19 are not.
    assert found.value == pytest.approx(0.20)
    found = half_width(np.array([*singles, *[0.001] * 4]), names)
    assert found.value == pytest.approx(0.19)
    copied = half_width(np.repeat(singles, 3), np.repeat(names[:20], 3))
    assert copied == half_width(singles, names[:20])


def test_too_few_families_fall_back_to_student_t_and_say_so():
    residuals = np.array([0.1, -0.2, 0.3])
    found = half_width(residuals, np.arange(3))
    spread = np.sqrt((residuals**2).mean() * (1 + 1 / 3))
    assert found.method == "student_t"
    assert found.value == pytest.approx(stats.t.ppf(0.95, 2) * spread)
    assert half_width(np.linspace(0, 1, 15), np.arange(15), 0.95).method == "student_t"
    assert half_width(np.linspace(0, 1, 19), np.arange(19), 0.95).method == "conformal_family"
    alone = half_width(np.array([0.1, 0.2]), np.array(["f", "f"]))
    assert (alone.method, np.isnan(alone.value)) == ("none", True)
    assert half_width(np.array([np.nan]), np.array(["f"])).method == "none"
    with pytest.raises(ValueError, match=r"interval level is 90"):
        half_width(residuals, np.arange(3), 90)


def test_conformal_intervals_cover_new_families_at_their_level():
    rng = np.random.default_rng(0)
    draws, n = 4000, 21
    scores = rng.standard_t(4, size=(draws, n + 1))
    inside = [abs(s[-1]) <= half_width(s[:-1], np.arange(n)).value for s in scores]
    exact = np.ceil((n + 1) * 0.9 - 1e-9) / (n + 1)
    assert np.mean(inside) == pytest.approx(exact, abs=4 * np.sqrt(0.09 / draws))


@pytest.mark.parametrize("sizes", [[1] * 32, [1, 2, 3] * 11, [1] * 28 + [12] * 4])
def test_a_model_of_a_new_family_is_covered_at_the_level_and_little_more(sizes):
    """Families err together; a new family's random member must be inside 90 % of the time."""
    rng = np.random.default_rng(1)
    draws, n = 3000, len(sizes)
    families = np.repeat(np.arange(n), sizes)
    spread = np.where(np.array(sizes) > 1, 2.0, 1.0)
    inside = []
    for _ in range(draws):
        order = rng.permutation(n)  # which of the families is the new one is random, too
        error = spread * rng.normal(size=n)
        residuals = error[families] + 0.5 * rng.normal(size=len(families))
        new = families == order[0]
        width = half_width(residuals[~new], families[~new]).value
        inside.append(abs(rng.choice(residuals[new])) <= width)
    slack = 4 * np.sqrt(0.09 / draws)
    assert 0.9 - slack <= np.mean(inside) <= 0.9 + 2 / n + slack


def test_coverage_equals_intervals_made_family_by_family():
    rng = np.random.default_rng(3)
    for n in (4, 12, 30):
        families = rng.integers(n, size=2 * n)
        residuals = rng.normal(size=2 * n)
        residuals[0] = np.nan
        coverage, count = held_out_coverage(residuals, families)
        inside = []
        for place in range(1, 2 * n):
            other = families != families[place]
            width = half_width(residuals[other], families[other]).value
            inside.append(abs(residuals[place]) <= width)
        assert (coverage, count) == (pytest.approx(np.mean(inside)), 2 * n - 1)


def test_coverage_uses_the_other_families():
    residuals = np.array([*np.full(20, 0.1), 9.0])
    coverage, n = held_out_coverage(residuals, np.arange(21))
    # The outlier is outside the others' interval; the others are inside theirs.
    assert (coverage, n) == (pytest.approx(20 / 21), 21)
    assert np.isnan(held_out_coverage(residuals[:2], np.arange(2))[0])


# --- the table -------------------------------------------------------------------------------

TYPES = {"A": "STS", "B": "Retrieval", "C": "Retrieval"}


def predictions(drop: tuple[str, str] | None = None) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        ("family_lomo", "v", f"f{m // 2}", f"m{m}", t, rng.random(), rng.random())
        for m in range(8)
        for t in TYPES
        if (f"m{m}", t) != drop
    ]
    columns = ["protocol", "variant", "fold", "model", "task", "predicted", "actual"]
    return pd.DataFrame(rows, columns=columns)


def value(table: pd.DataFrame, target: str, metric: str) -> tuple[float, int]:
    row = table[(table["target"] == target) & (table["metric"] == metric)].iloc[0]
    return float(row["value"]), int(row["n_models"])


def test_macro_is_the_mean_over_type_means():
    frame = predictions()
    table = validation_metrics(frame, TYPES)
    wide = frame.pivot(index="model", columns="task", values=["predicted", "actual"])
    macro = {
        s: (wide[s]["A"] + (wide[s]["B"] + wide[s]["C"]) / 2) / 2 for s in wide.columns.levels[0]
    }
    error = macro["predicted"] - macro["actual"]
    assert value(table, "macro", "mae") == (pytest.approx(error.abs().mean()), 8)
    assert value(table, "macro", "bias") == (pytest.approx(error.mean()), 8)
    expected = stats.kendalltau(macro["predicted"], macro["actual"]).statistic
    assert value(table, "macro", "kendall_tau") == (pytest.approx(expected), 8)
    error = wide["predicted"].mean(axis=1) - wide["actual"].mean(axis=1)
    assert value(table, "mean", "mae") == (pytest.approx(error.abs().mean()), 8)


def test_a_model_without_all_tasks_counts_only_where_it_can():
    table = validation_metrics(predictions(drop=("m3", "B")), TYPES)
    assert value(table, "macro", "mae")[1] == 7
    assert value(table, "mean", "mae")[1] == 7
    assert value(table, "task:B", "mae")[1] == 7
    assert value(table, "task:A", "mae")[1] == 8
    table = validation_metrics(predictions(), TYPES | {"D": "Clustering"})
    assert value(table, "macro", "mae")[1] == 0
    assert np.isnan(value(table, "macro", "kendall_tau")[0])


def test_draws_are_judged_one_by_one_and_averaged():
    frame = predictions().assign(variant="random/mean")
    other = frame.assign(variant="random/mean#01", predicted=frame["actual"])
    table = validation_metrics(pd.concat([frame, other]), TYPES)
    assert table["variant"].unique().tolist() == ["random/mean"]
    alone = value(validation_metrics(frame, TYPES), "macro", "mae")[0]
    assert value(table, "macro", "mae")[0] == pytest.approx(alone / 2)


def test_unknown_tasks_are_refused():
    with pytest.raises(ValueError, match="task 'A', which is not in the suite"):
        validation_metrics(predictions(), {"B": "STS", "C": "STS"})
