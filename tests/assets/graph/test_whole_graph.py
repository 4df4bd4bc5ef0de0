"""The whole graph on a tiny suite: everything is made once, and then nothing runs."""

from __future__ import annotations

import numpy as np
import pytest
from support import tiny_suite
from support.tiny_suite import REFERENCES, SUITE, TASKS, table

SCORES = ["mean", "mean_lower", "mean_upper", "macro_mean", "macro_lower", "macro_upper"]

# interfaces.md: table -> columns that must exist, and how many rows the tiny suite has.
TABLES = {
    "suites.suite_tasks": (
        "suite task task_type main_metric split hf_subsets k estimator kind", 3),
    "suites.suite_models": ("suite model family role kept source revision", 6),
    "pools.pool_items": ("suite task item_id hf_subset stratum gold", 120),
    "pools.pool_stats": ("suite task n_items n_texts n_available seconds pool_hash", 3),
    "outcomes.item_outcomes": ("suite task model item_id outcome", 600),
    "outcomes.pool_scores": ("suite task model pool_score n_items", 15),
    "reference_scores.full_scores": (
        "suite task model main_score source revision mteb_version", 15),
    "item_parameters.item_parameters": (
        "suite task item_id response_model slope intercept residual_sd n_models", 120),
    "item_parameters.abilities": ("suite task model theta", 15),
    "pools.pool_costs": ("suite task item_tokens shared_tokens n_tokens", 3),
    "selections.allocations": ("suite task k item_tokens spread tokens", 3),
    "selections.selected_items": ("suite task item_id method rank weight", 18),
    "calibrations.calibrations": (
        "suite task method estimator slope intercept residual_sd n_models", 3),
    "validation.lomo_predictions": (
        "suite protocol variant fold model task predicted actual", None),
    "validation.validation_metrics": (
        "suite protocol variant target metric value n_models lower upper", None),
    "validation.fold_ranges": ("suite protocol fold low high", None),
    "validation.nested_choices": ("suite preset fold variant inner_mae runner_up_mae", 4),
    "lite_scores.task_scores": ("suite task model predicted lower upper n_items", 3),
    "lite_scores.type_scores": (
        "suite task_type model predicted lower upper interval_method out_of_range", 3),
    "lite_scores.selected_observations": ("suite task model item_id rank observed", 18),
    "lite_scores.suite_scores": ("suite model " + " ".join(SCORES), 1),
}  # fmt: skip


def test_first_run_makes_every_partition_once(world):
    counts = tiny_suite.counts(world.first)
    models, tasks = len(REFERENCES), len(TASKS)
    grid = ("embedding_stats", "item_outcomes", "full_scores")
    per_task = (
        "resolved_tasks", "pool_items", "pool_costs", "outcome_matrix", "public_scores",
        "full_score_vectors", "item_parameters", "selected_items", "calibrations",
    )  # fmt: skip
    per_suite = (
        "suite_tasks", "roster", "registered_models", "kept_models", "allocations",
        "lomo_predictions",
        "validation_metrics", "lite_suite", "lite_scores", "dbt_reports",
    )  # fmt: skip
    expected = dict.fromkeys(grid, models * tasks) | dict.fromkeys(per_task, tasks)
    assert {k: v for k, v in counts.items() if k not in expected} == dict.fromkeys(per_suite, 1)
    assert {k: counts.get(k) for k in expected} == expected
    assert not world.first["failed_checks"]


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_the_interface_have_their_rows(home, name):
    columns, rows = TABLES[name]
    frame = table(home, name)
    assert set(columns.split()) <= set(frame.columns)
    mine = frame[frame["suite"] == SUITE]
    assert len(mine) == (rows or len(mine))
    assert len(mine)


def test_lite_scores_are_near_the_truth(home):
    """Not a test of accuracy; of wires crossed: a candidate of middling noise scores between."""
    predicted = table(home, "lite_scores.task_scores").set_index("task")["predicted"]
    full = table(home, "reference_scores.full_scores").pivot(
        index="task", columns="model", values="main_score"
    )
    for task in TASKS:
        low, high = full.loc[task].min(), full.loc[task].max()
        assert low - 0.15 <= predicted[task] <= high + 0.15
    assert full.mean()["tiny-a1"] > full.mean()["tiny-d"]


def test_marts_hold_the_candidate(home):
    board = table(home, "lite_leaderboard")
    assert "tiny-x" in set(board["model"])
    assert np.isfinite(board.loc[board["model"] == "tiny-x", "predicted_mean"]).all()
    assert len(table(home, "validation_summary"))


def test_second_run_runs_nothing_and_plan_and_status_agree(home):
    plan = tiny_suite.run_json("plan", "--suite", SUITE)
    assert tiny_suite.counts(plan) == {}
    again = tiny_suite.run_json("materialize", "--suite", SUITE)
    assert tiny_suite.counts(again) == {}
    assert sum(s["fresh"] for s in again["stages"].values()) == sum(
        s["fresh"] for s in plan["stages"].values()
    )
    for row in tiny_suite.run_json("status", "--suite", SUITE):
        assert row["fresh"] > 0
        assert (row["stale"], row["missing"], row["failed"]) == (0, 0, 0), row


def test_plan_of_an_empty_home_is_what_the_first_run_does(empty_home, world):
    plan = tiny_suite.run_json("plan", "--suite", SUITE)
    assert tiny_suite.ran(plan) == tiny_suite.ran(world.first)
    assert {r for e in plan["assets"].values() for r in e["reasons"].values()} == {"missing"}


def test_printed_report_names_each_stage_and_counts(home):
    code, out, _ = tiny_suite.command("--quiet", "materialize", "--suite", SUITE)
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[1:] if line.strip()}
    assert rows["outcomes"] == ["0", "18", "0", "0"]
    assert rows["lite_scores"] == ["0", "2", "0", "0"]
    assert "0 partitions ran" in out
