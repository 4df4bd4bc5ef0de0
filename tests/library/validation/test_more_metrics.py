"""Regret, detectable differences, siblings, bootstrap and out-of-range flags by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support.fits import predict_held_out
from support.zoo import make_models, make_task, mean_statistic

from mteblite.item_parameters.evidence import types_of
from mteblite.validation.agreement import (
    kendall_tau,
    minimum_detectable_difference,
    top1_regret,
    within_family_tau,
)
from mteblite.validation.bootstrap import (
    bootstrap_intervals,
    drawn_mae,
    drawn_tau,
    family_draws,
)
from mteblite.validation.metrics import validation_metrics
from mteblite.validation.out_of_range import flag_metrics, training_ranges


def test_regret_is_the_loss_of_trusting_the_ranking():
    actual = np.array([0.5, 0.7, 0.9])
    assert top1_regret(np.array([0.1, 0.3, 0.2]), actual) == pytest.approx(0.2)
    assert top1_regret(actual, actual) == 0.0
    # Of two that look best the worse one counts.
    assert top1_regret(np.array([0.3, 0.1, 0.3]), actual) == pytest.approx(0.4)
    assert np.isnan(top1_regret(actual[:0], actual[:0]))


def test_siblings_are_compared_among_themselves():
    actual = np.array([0.1, 0.2, 0.9, 0.8])
    families = np.array(["a", "a", "b", "b"])
    assert within_family_tau(np.array([0.1, 0.2, 0.8, 0.9]), actual, families) == 0.0
    assert within_family_tau(actual, actual, families) == 1.0
    assert np.isnan(within_family_tau(actual, actual, np.arange(4)))


def test_detectable_difference_grows_with_noise_and_matches_theory():
    rng = np.random.default_rng(0)
    actual = rng.random(400)
    found = {}
    for noise in (0.0, 0.05, 0.1):
        found[noise] = minimum_detectable_difference(actual + noise * rng.normal(size=400), actual)
        # P(right order at gap g) = Phi(g / (noise sqrt 2)) = .8
        theory = stats.norm.ppf(0.8) * noise * np.sqrt(2)
        assert found[noise] == pytest.approx(theory, abs=0.03)
    assert found[0.0] == 0.0
    assert np.isnan(minimum_detectable_difference(rng.random(400), actual))
    assert np.isnan(minimum_detectable_difference(actual[:4], actual[:4]))


# --- bootstrap -------------------------------------------------------------------------------


def test_draws_keep_families_whole_and_their_metrics_equal_metrics_of_the_copies():
    rng = np.random.default_rng(1)
    folds = np.array(["a", "a", "b", "c", "c", "d"])
    counts = family_draws(folds, 50)
    assert (counts[:, 0] == counts[:, 1]).all()
    assert (counts[:, [0, 2, 3, 5]].sum(axis=1) == 4).all()
    predicted, actual = rng.random(6), rng.random(6)
    for draw, error, tau in zip(
        counts, drawn_mae(predicted, actual, counts), drawn_tau(predicted, actual, counts),
        strict=True,
    ):  # fmt: skip
        copies = np.repeat(np.arange(6), draw.astype(int))
        assert error == pytest.approx(np.abs(predicted - actual)[copies].mean())
        expected = kendall_tau(predicted[copies], actual[copies])
        assert tau == pytest.approx(expected, nan_ok=True)


def frame(noise: dict[str, float], seed: int = 0, n: int = 20) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for m in range(n):
        actual = rng.random()
        shared = rng.normal()
        for variant, size in noise.items():
            predicted = actual + size * (0.9 * shared + 0.4 * rng.normal())
            rows.append(("family_lomo", variant, f"f{m:02d}", f"m{m:02d}", "A", predicted, actual))
    columns = ["protocol", "variant", "fold", "model", "task", "predicted", "actual"]
    return pd.DataFrame(rows, columns=columns)


def test_intervals_hold_the_value_and_cover_the_truth():
    covered = []
    for seed in range(60):
        table = bootstrap_intervals(frame({"v": 0.1}, seed, 30), {"A": "STS"}, draws=300)
        row = table[(table["target"] == "macro") & (table["metric"] == "mae")].iloc[0]
        assert row["lower"] <= row["value"] <= row["upper"]
        truth = 0.1 * np.sqrt(0.97) * np.sqrt(2 / np.pi)
        covered.append(row["lower"] <= truth <= row["upper"])
    assert np.mean(covered) > 0.85
    assert set(table["metric"]) == {"mae", "kendall_tau"}
    few = bootstrap_intervals(frame({"v": 0.1}, 0, 2), {"A": "STS"}, draws=50)
    assert few["lower"].isna().all()


# --- the table -------------------------------------------------------------------------------


def test_siblings_are_compared_for_macro_and_mean_only():
    table = validation_metrics(frame({"v": 0.1}), {"A": "STS"})
    assert set(table.loc[table["metric"] == "within_family_tau", "target"]) == {"macro", "mean"}
    for metric in ("top1_regret", "mdad"):
        found = table.loc[table["metric"] == metric, "target"]
        assert sorted(found) == ["macro", "mean", "task:A"]
    single = validation_metrics(frame({"v": 0.1}).assign(protocol="model_lomo"), {"A": "STS"})
    assert "within_family_tau" not in set(single["metric"])


# --- out of range ----------------------------------------------------------------------------


def test_flags_by_hand():
    families = make_models(10)
    evidences = [make_task(t, families=families, n_items=40) for t in ("A", "B")]
    ranges = training_ranges(evidences, "family_lomo").set_index("fold")
    macro = np.mean([e.full_scores for e in evidences], axis=0)
    best = int(np.argmax(macro))
    others = np.delete(macro, best)
    name = evidences[0].families[best]
    assert ranges.loc[name, "high"] == pytest.approx(others.max())
    assert ranges.loc[name, "low"] == pytest.approx(others.min())
    rows = pd.DataFrame(
        [("family_lomo", "oracle", f, m, e.task, s, s)
         for e in evidences
         for m, f, s in zip(e.models, e.families, e.full_scores, strict=True)],
        columns=["protocol", "variant", "fold", "model", "task", "predicted", "actual"],
    )  # fmt: skip
    flat = rows.assign(variant="flat", predicted=float(np.median(macro)))
    ranges = training_ranges(evidences, "family_lomo")
    found = flag_metrics(pd.concat([rows, flat]), ranges, types_of(evidences)).set_index("variant")
    assert found.loc["oracle", ["n_beyond", "flagged", "false_flags"]].tolist() == [2, 1.0, 0.0]
    assert found.loc["flat", ["n_beyond", "flagged", "n_inside"]].tolist() == [2, 0.0, 8]


def test_the_switch_flags_frontier_models():
    families = make_models(40)
    evidences = [make_task(f"T{i}", families=families, n_items=300, binary=True) for i in range(4)]
    variants = ["anchor/switch/strat", "anchor/mean/strat"]
    predicted = predict_held_out(
        evidences, variants, {e.task: 40 for e in evidences}, "frontier", 0,
        statistic=mean_statistic,
    )  # fmt: skip
    ranges = training_ranges(evidences, "frontier")
    found = flag_metrics(predicted, ranges, types_of(evidences)).set_index("variant")
    assert found.loc["anchor/switch/strat", "n_beyond"] > 4
    assert found.loc["anchor/switch/strat", "flagged"] >= 0.75
