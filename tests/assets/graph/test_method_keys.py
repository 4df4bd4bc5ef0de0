"""What each key of a suite file that chooses a method makes run, and what comes of it."""

from __future__ import annotations

import numpy as np
import pytest
from support import tiny_suite
from support.tiny_suite import CANDIDATE, SUITE, TASKS, counts, ran, table

from mteblite.lite_scores.joint_calibration import JointCalibration

ONCE = dict.fromkeys(("lomo_predictions", "validation_metrics", "lite_suite", "lite_scores"), 1)
ROWS = {"suite_tasks": 1}
"""Keys that stand in the rows of the suite's tasks, too."""
VALIDATION_ALONE = {k: v for k, v in ONCE.items() if k != "lite_scores"}
"""A release made of equal predictions is the same release: its candidates stay as they are."""
SURROGATE = {"selection": "anchorset", "estimator": "surrogate"}


def change(home, **keys):
    tiny_suite.write_suite(home, tiny_suite.suite_document() | keys)


@pytest.mark.parametrize(("keys", "expected"), [
    ({"description": "another"}, {}),
    ({"calibration": "crossfit"}, ONCE | {"calibrations": 3}),
    ({"set_metric": SURROGATE}, ROWS | ONCE | {"calibrations": 1}),
    # Graded outcomes have this response model anyway: what is fitted again is equal.
    ({"response_model": "linear_gaussian"}, {"item_parameters": 3, "lomo_predictions": 1}),
    pytest.param({"preset": None}, VALIDATION_ALONE, marks=pytest.mark.long),
    pytest.param({"validation": {"random_draws": 3}}, VALIDATION_ALONE, marks=pytest.mark.long),
    ({"validation": {"protocols": ["family_lomo"]}}, VALIDATION_ALONE),
    ({"interval_level": 0.5}, {"lite_suite": 1, "lite_scores": 1}),
    ({"k": 8}, ROWS | ONCE | {"allocations": 1, "selected_items": 3, "calibrations": 3}),
], ids=lambda v: "-".join(v) if isinstance(v, dict) else "")  # fmt: skip
def test_a_changed_key_runs_the_stages_that_use_it(home, upkeep, keys, expected):
    change(home, **keys)
    assert counts(upkeep()) == expected
    assert counts(upkeep(command="plan")) == {}


def test_the_table_of_validation_holds_protocols_intervals_and_optimism(home):
    metrics = table(home, "validation.validation_metrics")
    assert set(metrics["protocol"]) == {"family_lomo", "model_lomo", "nested_family_lomo"}
    keyed = metrics.set_index(["protocol", "variant", "target", "metric"])
    nested = keyed.loc["nested_family_lomo", "chosen:seed", "macro"]
    assert nested.loc["optimism", "value"] == pytest.approx(
        nested.loc["mae", "value"] - nested.loc["naive_best_mae", "value"]
    )
    own = keyed.loc["family_lomo", "anchor/mean/anchorset", "macro"]
    assert own.loc["mae", "lower"] <= own.loc["mae", "value"] <= own.loc["mae", "upper"]
    random = keyed.loc[("family_lomo", "random/mean", "macro", "mae"), "value"]
    assert own.loc["mae_minus_random", "value"] == pytest.approx(own.loc["mae", "value"] - random)
    for task in TASKS:
        assert {"mae", "mdad", "top1_regret"} <= set(
            keyed.loc["family_lomo", "anchor/mean/anchorset", f"task:{task}"].index
        )
    choices = table(home, "validation.nested_choices")
    assert sorted(choices["fold"]) == ["a", "b", "c", "d"]


def test_four_families_have_no_frontier_and_the_metadata_say_so(home):
    from mteblite_assets.cli.session import Session

    event = Session().instance.get_latest_materialization_event(_key("lomo_predictions"))
    assert event is not None
    absent = event.asset_materialization.metadata["absent"].value
    assert "frontier: needs at least 5 families, there are 4" in absent


def _key(name):
    import dagster as dg

    return dg.AssetKey(name)


def test_five_families_have_a_frontier(home, upkeep):
    path = str(home.parent / "models" / "spare-3")
    code, _, err = tiny_suite.command(
        "models", "add", "spare-3", "--suite", SUITE, "--path", path, "--role", "reference",
        "--family", "e",
    )  # fmt: skip
    assert code == 0, err
    upkeep()
    metrics = table(home, "validation.validation_metrics")
    frontier = metrics[metrics["protocol"] == "frontier"]
    assert {"mae", "out_of_range_flagged"} <= set(frontier["metric"])


def test_a_joint_suite_end_to_end(home, upkeep):
    change(home, calibration="blup", set_metric=SURROGATE, preset="best")
    made = ran(upkeep())
    assert made["lite_scores"] == [f"{CANDIDATE[0]}|{SUITE}"]
    stored = table(home, "lite_scores.lite_suite_joint")
    assert stored["suite"].tolist() == [SUITE]
    release = JointCalibration.from_json(str(stored["joint"].iloc[0]))
    assert release.tasks == tuple(sorted(TASKS))
    assert set(release.factors) >= {"macro", "mean", *(f"task:{t}" for t in TASKS)}
    scores = table(home, "lite_scores.task_scores").set_index("task")
    assert scores["observed"].all()
    assert (scores["lower"] <= scores["predicted"]).all()
    assert (scores["predicted"] <= scores["upper"]).all()
    suite = table(home, "lite_scores.suite_scores").iloc[0]
    assert suite["macro_lower"] <= suite["macro_mean"] <= suite["macro_upper"]
    assert suite["mean"] == pytest.approx(scores["predicted"].mean())
    # Four families cannot make a conformal interval of 90 %: it says what stepped in.
    assert set(scores["interval_method"]) == {"student_t"}
    variants = set(table(home, "validation.lomo_predictions")["variant"])
    assert {"chosen:best", "strat/mean/strat:surrogate+blup"} <= variants
    value = tiny_suite.run_json("score", CANDIDATE[0], "--suite", SUITE)
    assert value["macro_mean"] == pytest.approx(suite["macro_mean"])


def test_a_budget_takes_more_of_what_is_cheap_and_uncertain(home, upkeep):
    change(home, allocation="budget")
    made = counts(upkeep())
    assert made["allocations"] == 1
    rows = table(home, "selections.allocations").set_index("task")
    equal = float((rows["item_tokens"] * 6).sum())
    assert (rows["k"] * rows["item_tokens"]).sum() <= equal + 1e-9
    assert rows["k"].nunique() > 1
    assert (rows["spread"] > 0).all()
    sizes = table(home, "selections.selected_items").groupby("task").size()
    assert sizes.to_dict() == rows["k"].to_dict()
    change(home, allocation="budget", token_budget=int(2 * equal))
    upkeep()
    more = table(home, "selections.allocations").set_index("task")["k"]
    assert more.sum() > rows["k"].sum()


FISHER = {"selection": "fisher", "estimator": "mean"}


def spent(home):
    """By task, what the selection costs: each item its share of what average items cost."""
    items = table(home, "pools.shared_item_costs")
    items["price"] = items["tokens"] / items.groupby("pool_task")["tokens"].transform("mean")
    tasks = table(home, "suites.suite_tasks")[["task", "pool_task"]]
    chosen = table(home, "selections.selected_items").merge(tasks, on="task")
    prices = chosen.merge(items, on=["pool_task", "item_id"]).groupby("task")["price"].sum()
    return prices * table(home, "selections.allocations").set_index("task")["item_tokens"]


@pytest.mark.long
def test_tokens_choose_items_by_gain_per_token_down_the_graph(home, upkeep):
    keys = {"per_item": FISHER, "preset": None}
    change(home, allocation="budget", **keys)
    upkeep()
    by_number = table(home, "selections.allocations").set_index("task")
    assert by_number["tokens"].isna().all()
    predicted = table(home, "validation.lomo_predictions")
    price = spent(home) / table(home, "selections.selected_items").groupby("task").size()
    change(home, allocation="tokens", **keys)
    report = upkeep()
    made = counts(report)
    assert not report["failed_checks"]
    assert {k: made[k] for k in ("allocations", "selected_items", "lomo_predictions")} == {
        "allocations": 1, "selected_items": 3, "lomo_predictions": 1,
    }  # fmt: skip
    assert not {"item_parameters", "pool_costs", "pool_items"} & set(made)
    rows = table(home, "selections.allocations").set_index("task")
    assert rows["k"].to_dict() == by_number["k"].to_dict()
    assert np.allclose(rows["tokens"], rows["k"] * rows["item_tokens"])
    cost = spent(home)
    assert (cost <= rows["tokens"] * (1 + 1e-9)).all()
    sizes = table(home, "selections.selected_items").groupby("task").size()
    # Queries differ in the length of their documents: short ones that tell as much come first.
    assert (cost / sizes)["TinySearch"] < price["TinySearch"]
    assert sizes["TinySearch"] >= rows["k"]["TinySearch"]
    # All items of the others cost the same.
    assert sizes["TinySTS"] == rows["k"]["TinySTS"]
    assert not table(home, "validation.lomo_predictions").equals(predicted)
    more = int(1.5 * rows["tokens"].sum())
    change(home, allocation="tokens", token_budget=more, **keys)
    made = counts(upkeep())
    assert made["allocations"] == made["lomo_predictions"] == 1
    assert not {"item_parameters", "pool_costs", "pool_items"} & set(made)
    assert rows["tokens"].sum() < spent(home).sum() <= more
    assert counts(upkeep(command="plan")) == {}


@pytest.mark.long
def test_inner_fits_and_the_release_pay_by_token_too(home, upkeep):
    keys = {"per_item": FISHER, "set_metric": SURROGATE, "calibration": "blup", "preset": None}
    change(home, allocation="budget", **keys)
    upkeep()
    lines = table(home, "calibrations.calibrations").set_index("task")
    change(home, allocation="tokens", **keys)
    report = upkeep()
    assert not report["failed_checks"]
    assert counts(report)["lite_scores"] == 1
    found = table(home, "calibrations.calibrations").set_index("task")
    assert found.loc["TinySearch", "intercept"] != lines.loc["TinySearch", "intercept"]
    assert len(table(home, "lite_scores.lite_suite_joint")) == 1
    assert counts(upkeep(command="plan")) == {}


def test_a_level_that_four_families_do_not_allow_is_refused(home, upkeep):
    change(home, interval_level=0.9)
    report = upkeep(expect=1)
    (reason,) = report["assets"]["lite_suite"]["failed"].values()
    assert "interval_level 0.9 needs held-out models of at least 9 families, there are 4" in reason
    change(home, interval_level=0.8)
    upkeep()
    assert set(table(home, "lite_scores.task_scores")["interval_method"]) == {"conformal_family"}


@pytest.mark.parametrize(("keys", "message"), [
    ({"calibration": "blub"}, "`calibration`: there is no 'blub'; did you mean `blup`?"),
    ({"preset": "worst"}, "`preset`: there is no 'worst'"),
    ({"response_model": "3pl"}, "`response_model`: there is no '3pl'"),
    ({"set_metric": {"estimator": "auc"}}, "`set_metric.estimator`: there is no 'auc'"),
    ({"allocation": "fair"}, "`allocation`: Input should be 'equal', 'budget' or 'tokens'"),
    ({"token_budget": 5}, "`token_budget` needs `allocation: budget`"),
    ({"interval_level": 90}, "`interval_level`: Input should be less than 1"),
    ({"validation": {"protocols": ["family_lomo", "loo"]}},
     "`validation.protocols`: there is no 'loo'"),
    ({"validation": {"protocols": ["model_lomo"]}}, "`family_lomo` must be among the protocols"),
    ({"validation": {"draws": 3}}, "unknown key `validation.draws`"),
])  # fmt: skip
def test_mistakes_name_file_key_and_what_is_allowed(home, keys, message):
    change(home, **keys)
    code, _, err = tiny_suite.command("status", "--suite", SUITE)
    assert code == 2
    assert f"{SUITE}.yaml: " in err
    assert message in err
