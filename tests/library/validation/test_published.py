"""The table that validation publishes, against numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support.zoo import make_models, make_task, mean_statistic

from mteblite.calibrations.variant import Variant
from mteblite.validation.agreement import bias, kendall_tau_resolvable, pearson
from mteblite.validation.bootstrap import (
    drawn_bias,
    drawn_pearson,
    drawn_resolvable,
    family_draws,
)
from mteblite.validation.lomo import Settings
from mteblite.validation.presets import Preset
from mteblite.validation.published import COLUMNS, published_metrics
from mteblite.validation.running import validate
from mteblite.validation.variants import draw_name

TYPES = {"A": "STS", "B": "Retrieval"}
FAMILIES = {f"m{i}": f"f{i // 2}" for i in range(10)}
PREDICTED = ["protocol", "variant", "fold", "model", "task", "predicted", "actual"]
PRESET = Preset(
    name="two", description="d", patience=0, variants=["anchor/mean/strat", "fisher/mean/strat"]
)


def rows(protocol: str, variant: str, error: float, swing: float = 0.0) -> list[tuple[object, ...]]:
    """Every model is off by `error`, and by `swing` more or less in turn, on both tasks."""
    return [
        (protocol, variant, FAMILIES[m] if protocol != "model_lomo" else m, m, task,
         i / 10 + error + swing * (-1) ** i, i / 10)
        for i, m in enumerate(FAMILIES) for task in TYPES
    ]  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    predictions = pd.DataFrame(
        [*rows("family_lomo", "good/mean/strat", 0.01),
         *rows("family_lomo", "bad/mean/strat", 0.03),
         *rows("family_lomo", "random/mean", 0.04), *rows("family_lomo", "random/mean#01", 0.06),
         *rows("model_lomo", "good/mean/strat", 0.01, 0.005),
         *rows("nested_family_lomo", "chosen:two", 0.02)],
        columns=PREDICTED,
    )  # fmt: skip
    ranges = pd.DataFrame(
        [(p, f, 0.0, 0.9) for p in ("family_lomo", "nested_family_lomo") for f in set(
            FAMILIES.values())] + [("model_lomo", m, 0.1, 0.8) for m in FAMILIES],
        columns=["protocol", "fold", "low", "high"],
    )  # fmt: skip
    names = ["good/mean/strat", "bad/mean/strat"]
    return published_metrics(predictions, TYPES, FAMILIES, ranges, names)


def one(table: pd.DataFrame, *key: str) -> pd.Series:
    found = table[(table[COLUMNS[:4]] == list(key)).all(axis=1)]
    assert len(found) == 1, key
    return found.iloc[0]


def test_each_row_is_there_once_and_intervals_hold_their_value(table):
    assert not table.duplicated(COLUMNS[:4]).any()
    row = one(table, "model_lomo", "good/mean/strat", "macro", "mae")
    assert row["value"] == pytest.approx(0.01)
    # Pairs of models that err by .015 and .005: whatever families are drawn, the mean is the same.
    assert (row["lower"], row["upper"]) == pytest.approx((0.01, 0.01))
    tau = one(table, "model_lomo", "good/mean/strat", "task:A", "kendall_tau")
    assert tau["value"] == tau["lower"] == tau["upper"] == 1.0


def test_differences_from_random_are_paired(table):
    for variant, gap in (("good/mean/strat", -0.04), ("bad/mean/strat", -0.02)):
        row = one(table, "family_lomo", variant, "macro", "mae_minus_random")
        assert row[["value", "lower", "upper"]].tolist() == pytest.approx([gap] * 3)
        share = one(table, "family_lomo", variant, "mean", "share_better_than_random")
        assert share["value"] == 1.0
    nested = one(table, "nested_family_lomo", "chosen:two", "macro", "mae_minus_random")
    assert nested["value"] == pytest.approx(-0.03)
    assert not (table["metric"].eq("mae_minus_random") & table["variant"].eq("random/mean")).any()


def test_optimism_is_nested_minus_the_best_in_hindsight(table):
    key = ("nested_family_lomo", "chosen:two", "macro")
    assert one(table, *key, "naive_best_mae")["value"] == pytest.approx(0.01)
    assert one(table, *key, "optimism")["value"] == pytest.approx(0.01)


def test_flags_count_models_beyond_their_fold(table):
    key = ("model_lomo", "good/mean/strat", "macro")
    # m0 (0.0) and m9 (0.9) are beyond [.1, .8]; predicted .015 and .905 they are flagged, and m8
    # (.8, predicted .815) is flagged wrongly.
    flagged, false = (
        one(table, *key, f"out_of_range_{name}") for name in ("flagged", "false_flags")
    )
    assert (flagged["value"], flagged["n_models"]) == (1.0, 2)
    assert (false["value"], false["n_models"]) == (pytest.approx(1 / 8), 8)


def test_draws_of_each_metric_are_the_metric_of_the_copies():
    rng = np.random.default_rng(1)
    counts = family_draws(np.array(["a", "a", "b", "c", "c", "d"]), 40)
    predicted, actual = rng.random(6), rng.random(6)
    for drawn, metric in (
        (drawn_bias, bias), (drawn_pearson, pearson), (drawn_resolvable, kendall_tau_resolvable),
    ):  # fmt: skip
        for draw, value in zip(counts, drawn(predicted, actual, counts), strict=True):
            copies = np.repeat(np.arange(6), draw.astype(int))
            assert value == pytest.approx(metric(predicted[copies], actual[copies]), nan_ok=True)


def test_protocols_that_cannot_run_say_why():
    protocols = ["family_lomo", "nested_family_lomo", "frontier"]
    settings = Settings(dict.fromkeys(TYPES, 8), 0, statistic=mean_statistic, random_draws=2)

    def run(n_families, preset=PRESET):
        families = make_models(n_families, siblings=2)
        evidences = [make_task(t, k, families=families, n_items=40) for t, k in TYPES.items()]
        chosen = Variant.parse("strat/mean/strat")
        return validate(evidences, chosen, preset, protocols, settings)

    two = run(2)
    assert set(two.predictions["protocol"]) == {"family_lomo"}
    assert two.absent == {
        "nested_family_lomo": "needs at least 3 families, there are 2",
        "frontier": "needs at least 5 families, there are 2",
    }
    none = run(5, preset=None)
    assert none.absent == {
        "nested_family_lomo": "the suite names no preset to choose variants from"
    }
    assert none.choices.empty
    everything = run(5)
    assert set(everything.predictions["protocol"]) == set(protocols)
    assert set(everything.folds["protocol"]) == set(everything.ranges["protocol"]) == set(protocols)
    assert set(everything.choices["variant"]) <= {str(v) for v in PRESET.variants}
    assert everything.absent == {}


def test_two_families_of_one_have_no_predictions_and_that_is_no_error():
    evidences = [make_task(t, k, families=make_models(2), n_items=40) for t, k in TYPES.items()]
    settings = Settings(dict.fromkeys(TYPES, 8), 0, statistic=mean_statistic, random_draws=2)
    found = validate(
        evidences, Variant.parse("strat/mean/strat"), PRESET, ["family_lomo"], settings
    )
    assert found.predictions.empty
    families = dict(zip(found.folds["model"], found.folds["family"], strict=True))
    assert published_metrics(found.predictions, TYPES, families, found.ranges).empty


def test_the_interval_of_a_metric_contains_the_spread_of_item_draws():
    """Twenty draws, of which the last ten err more: families are equal, so only draws differ."""
    draws = [
        row
        for draw in range(20)
        for row in rows("family_lomo", draw_name("random/mean", draw), 0.01 if draw < 10 else 0.03)
    ]
    predictions = pd.DataFrame(draws, columns=PREDICTED)
    ranges = pd.DataFrame(
        [("family_lomo", f, 0.0, 0.9) for f in set(FAMILIES.values())],
        columns=["protocol", "fold", "low", "high"],
    )
    found = published_metrics(predictions, TYPES, FAMILIES, ranges)
    row = one(found, "family_lomo", "random/mean", "macro", "mae")
    assert (row["value"], row["lower"], row["upper"]) == pytest.approx((0.02, 0.01, 0.03))
    spread = one(found, "family_lomo", "random/mean", "macro", "mae_draw_sd")
    assert spread["value"] == pytest.approx(0.01 * (20 / 19) ** 0.5)
