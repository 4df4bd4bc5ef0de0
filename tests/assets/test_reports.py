"""The dbt reports on a small warehouse filled by hand: what they compute, what they catch."""

from __future__ import annotations

import json
import math
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from support import tiny_suite

from mteblite.task_types.registry import type_facts
from mteblite_assets.cli.session import QUIET, Session
from mteblite_resources.database.ledger import write_ledger
from mteblite_resources.home import Home
from mteblite_resources.reports import PROJECT, Reports, dbt_environment, dbt_executable
from mteblite_resources.warehouse import Warehouse

VARIANT = "anchor/mean/anchorset"
TYPES = {"A1": "STS", "A2": "STS", "B": "Retrieval"}
REFERENCES = {"r1": "f1", "r2": "f1", "r3": "f2"}
PREDICTED = {
    "r1": {"A1": 0.5, "A2": 0.7, "B": 0.4},
    "r2": {"A1": 0.6, "A2": 0.8, "B": 0.3},
    "r3": {"A1": 0.2, "A2": 0.4, "B": 0.2},
}
TRUE = {
    "r1": {"A1": 0.52, "A2": 0.68, "B": 0.44},
    "r2": {"A1": 0.6, "A2": 0.8, "B": 0.3},
    "r3": {"A1": 0.25, "A2": 0.4},  # B was never run in full
}
LITE = {"c1": {"A1": 0.9, "A2": 0.7, "B": 0.6}, "c2": {"A1": 0.1, "A2": 0.1, "B": math.nan}}
ASKED_FOR = {"r2": {"A1": 0.99, "A2": 0.99, "B": 0.99}}
"""Lite scores of a reference model, which somebody asked for."""
METRICS = [
    (VARIANT, "mae", 0.02), (VARIANT, "kendall_tau", 0.8), (VARIANT, "pearson", 0.9),
    ("random/mean", "mae", 0.04), ("pool/mean", "mae", 0.01), ("pool/mean", "kendall_tau", None),
]  # fmt: skip


PARTS = """
UPDATE suites.suite_tasks SET part_of = 'A' WHERE suite = 'parts' AND task IN ('A1', 'A2');
INSERT INTO suites.suite_facts BY NAME SELECT 'parts' AS suite, 'mean' AS headline;
UPDATE suites.registered_models SET provenance = 'self_reported'
    WHERE suite = 'parts' AND model = 'r3';
UPDATE reference_scores.shared_full_scores SET revision = 'abc,external'
    WHERE pool_task = 'B/parts' AND model = 'r1';
"""
"""Two tasks that count as one, the plain mean as headline, scores of the models' own authors."""


def long(table: dict[str, dict[str, float]], value: str) -> list[dict[str, Any]]:
    """Rows (task, model, value) of a table by model and task."""
    return [{"task": t, "model": m, value: v} for m, row in table.items() for t, v in row.items()]


def suite_rows(suite: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of every stage table that the reports read."""
    tasks = [
        {"task": t, "task_type": kind, "main_metric": "m", "k": 5, "kind": "per_item",
         "pool_task": f"{t}/{suite}", **type_facts(kind, "m")}
        for t, kind in TYPES.items()
    ]  # fmt: skip
    models = [{"model": m, "family": f, "role": "reference"} for m, f in REFERENCES.items()]
    models += [{"model": m, "family": "new", "role": "candidate"} for m in LITE]
    scores = [
        {"task": r["task"], "model": r["model"], "predicted": r["predicted"],
         "task_type": TYPES[r["task"]], "lower": r["predicted"] - 0.1,
         "upper": r["predicted"] + 0.1, "n_items": 5}
        for r in long(LITE | ASKED_FOR, "predicted")
    ]  # fmt: skip
    held_out = [
        {**r, "protocol": "family_lomo", "variant": variant, "fold": REFERENCES[r["model"]],
         "actual": TRUE[r["model"]].get(r["task"])}
        for variant in (VARIANT, "pool/mean") for r in long(PREDICTED, "predicted")
    ]  # fmt: skip
    return {
        "suites.suite_tasks": tasks,
        "suites.registered_models": models,
        "reference_scores.shared_full_scores": [
            {"pool_task": f"{r['task']}/{suite}", "model": r["model"], "main_score": r["score"]}
            for r in long(TRUE, "score")
        ],
        "reference_scores.candidate_full_scores": [
            {"task": t, "model": "c1", "main_score": s}
            for t, s in (("A1", 0.8), ("A2", 0.8), ("B", 0.5))
        ],
        "validation.lomo_predictions": held_out,
        "validation.validation_metrics": [
            *({"protocol": "family_lomo", "variant": v, "target": "macro", "metric": m, "value": x,
               "n_models": 3, "lower": None, "upper": None} for v, m, x in METRICS),
            *({"protocol": "nested_family_lomo", "variant": "chosen:seed", "target": "macro",
               "metric": m, "value": x, "n_models": 3, "lower": x - 0.01, "upper": x + 0.02}
              for m, x in (("mae", 0.03), ("optimism", 0.01))),
        ],
        "lite_scores.lite_suites": [
            {"task": t, "task_type": kind, "variant": VARIANT} for t, kind in TYPES.items()
        ],
        "lite_scores.lite_suite_intervals": [
            {"target": "macro", "half_width": 0.03}, {"target": "mean", "half_width": 0.02}
        ],
        "lite_scores.task_scores": scores,
        "lite_scores.suite_scores": [
            {"model": "c1", "n_tasks": 3, "macro_lower": 0.6, "macro_upper": 0.79,
             "out_of_range": True},
            {"model": "c2", "n_tasks": 3, "macro_lower": None, "macro_upper": None,
             "out_of_range": None},
        ],
    }  # fmt: skip


def fill(home: Home, suites: Sequence[str]) -> None:
    """Write the rows of some suites as the stages would."""
    with Warehouse(home.writer, home.snapshot).session() as connection:
        for suite in suites:
            for table, rows in suite_rows(suite).items():
                frame = pd.DataFrame(rows)
                shared = table.rsplit(".", 1)[1].startswith("shared_")
                frame = frame if shared else frame.assign(suite=suite)
                connection.register("_rows", frame)
                connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM _rows")
                connection.unregister("_rows")


def build(home: Home) -> subprocess.CompletedProcess[str]:
    """Run `dbt build` on a home, as the asset does."""
    return subprocess.run(
        [dbt_executable(), "build", "--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT),
         "--target-path", str(home.dbt)],
        env={**os.environ, **dbt_environment(home.writer, home.dbt)},
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip


def read(home: Home, sql: str) -> pd.DataFrame:
    with duckdb.connect(str(home.writer), read_only=True) as connection:
        return connection.execute(sql).df()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with suites of the same rows, one with a NaN that is no null; its reports built."""
    home = Home(tmp_path_factory.mktemp("reports") / "home").prepare()
    fill(home, ["one", "two", "nan", "parts", "wide"])
    with Warehouse(home.writer, home.snapshot).session() as connection:
        connection.execute(PARTS)
        connection.execute(
            "UPDATE lite_scores.lite_suite_intervals SET half_width = 2 WHERE suite = 'wide'"
        )
        connection.execute(
            "UPDATE lite_scores.task_scores SET predicted = 'nan' WHERE suite = 'nan' "
            "AND model = 'c2' AND task = 'B'"
        )
    done = build(home)
    assert done.returncode == 0, done.stdout
    return home


@pytest.fixture(scope="module")
def leaderboard(home: Home) -> pd.DataFrame:
    frame = read(home, "SELECT * FROM lite_leaderboard WHERE suite = 'one'")
    return frame.set_index("model")


def test_suites_do_not_mix(home: Home) -> None:
    columns = "model, rank, predicted_macro_mean, predicted_mean, true_macro_mean, n_tasks"
    one, two = (
        read(home, f"SELECT {columns} FROM lite_leaderboard WHERE suite = '{s}' ORDER BY model")
        for s in ("one", "two")
    )
    pd.testing.assert_frame_equal(one, two)
    assert len(one) == len(REFERENCES) + len(LITE)


def test_means_of_held_out_predictions(leaderboard: pd.DataFrame) -> None:
    row = leaderboard.loc["r1"]
    assert row["prediction"] == "held_out"
    assert row["predicted_mean"] == pytest.approx((0.5 + 0.7 + 0.4) / 3)
    # Macro: the mean over types of the mean over their tasks.
    assert row["predicted_macro_mean"] == pytest.approx(((0.5 + 0.7) / 2 + 0.4) / 2)
    assert row["true_macro_mean"] == pytest.approx(((0.52 + 0.68) / 2 + 0.44) / 2)
    assert row["macro_error"] == pytest.approx(0.5 - 0.52)
    assert row["macro_lower"] == pytest.approx(0.5 - 0.03)
    assert row["mean_upper"] == pytest.approx((0.5 + 0.7 + 0.4) / 3 + 0.02)


def test_no_interval_reaches_beyond_what_the_types_allow(home: Home) -> None:
    """Correlations may be negative, what the mean is of besides may not."""
    row = read(home, "FROM lite_leaderboard WHERE suite = 'wide' AND model = 'r1'").iloc[0]
    assert row["macro_lower"] == pytest.approx((-1 + 0) / 2)
    assert row["mean_lower"] == pytest.approx((-1 - 1 + 0) / 3)
    assert row["macro_upper"] == row["mean_upper"] == 1


def test_means_of_lite_scores(leaderboard: pd.DataFrame) -> None:
    row = leaderboard.loc["c1"]
    assert (row["prediction"], row["role"], row["family"]) == ("lite", "candidate", "new")
    assert row["predicted_macro_mean"] == pytest.approx((0.8 + 0.6) / 2)
    assert row["true_mean"] == pytest.approx((0.8 + 0.8 + 0.5) / 3)


def test_a_reference_model_that_was_scored_keeps_its_held_out_prediction(
    leaderboard: pd.DataFrame,
) -> None:
    assert leaderboard.index.is_unique
    assert leaderboard.loc["r2", "prediction"] == "held_out"
    assert leaderboard.loc["r2", "predicted_mean"] == pytest.approx((0.6 + 0.8 + 0.3) / 3)


def test_parts_count_as_one_and_the_headline_ranks(home: Home) -> None:
    board = read(home, "SELECT * FROM lite_leaderboard WHERE suite = 'parts'").set_index("model")
    r1 = board.loc["r1"]
    assert r1["predicted_mean"] == pytest.approx(((0.5 + 0.7) / 2 + 0.4) / 2)
    assert r1["true_mean"] == pytest.approx(((0.52 + 0.68) / 2 + 0.44) / 2)
    assert r1["predicted_macro_mean"] == pytest.approx(((0.5 + 0.7) / 2 + 0.4) / 2)
    assert set(board["headline"]) == {"mean"}
    by_mean = board["predicted_mean"].rank(method="min", ascending=False, na_option="bottom")
    assert board["rank"].tolist() == by_mean.astype(int).tolist()


def test_scores_of_the_models_own_authors_are_marked(home: Home, leaderboard: pd.DataFrame) -> None:
    board = read(home, "SELECT * FROM lite_leaderboard WHERE suite = 'parts'").set_index("model")
    marks = {m: p for m, p in board["provenance"].items() if isinstance(p, str)}
    assert marks == {"r1": "partly_self_reported", "r3": "self_reported"}
    assert not any(isinstance(p, str) for p in leaderboard["provenance"])
    assert set(leaderboard["headline"]) == {"macro_mean"}


def test_ranks_go_by_the_predicted_macro_mean(leaderboard: pd.DataFrame) -> None:
    ranks = leaderboard["rank"].to_dict()
    # r1 and r2 have the same macro mean, 0.5, and share a rank.
    assert ranks == {"c1": 1, "r1": 2, "r2": 2, "r3": 4, "c2": 5}


def test_no_mean_over_a_part_of_the_tasks(leaderboard: pd.DataFrame) -> None:
    missing_truth = leaderboard.loc["r3"]
    assert math.isnan(missing_truth["true_mean"])
    assert math.isnan(missing_truth["true_macro_mean"])
    assert missing_truth["predicted_macro_mean"] == pytest.approx((0.3 + 0.2) / 2)
    undefined = leaderboard.loc["c2"]
    assert math.isnan(undefined["predicted_mean"])
    assert math.isnan(undefined["predicted_macro_mean"])
    assert undefined["n_tasks"] == 2


def test_nan_is_no_score(home: Home) -> None:
    """A NaN that reached the table as a number counts as missing, not as the highest score."""
    row = read(home, "SELECT * FROM lite_leaderboard WHERE suite = 'nan' AND model = 'c2'").iloc[0]
    assert pd.isna(row["predicted_macro_mean"])
    assert row["rank"] == 5


def test_validation_summary_compares_with_random_and_pool(home: Home) -> None:
    query = "SELECT * FROM validation_summary WHERE suite = 'one' AND protocol = 'family_lomo'"
    rows = read(home, query).set_index("variant")
    assert rows.loc[VARIANT, "mae_ratio_to_random"] == pytest.approx(0.5)
    assert rows.loc["random/mean", "mae_ratio_to_random"] == pytest.approx(1.0)
    assert rows.loc[VARIANT, "pool_mae"] == pytest.approx(0.01)
    assert rows["chosen"].to_dict() == {VARIANT: True, "random/mean": False, "pool/mean": False}
    assert rows.loc[VARIANT, ["kendall_tau", "pearson"]].tolist() == [0.8, 0.9]
    assert pd.isna(rows.loc["pool/mean", "kendall_tau"])


def test_nested_rows_are_compared_with_the_baselines_of_the_same_folds(home: Home) -> None:
    query = "SELECT * FROM validation_summary WHERE suite = 'one' AND variant = 'chosen:seed'"
    (row,) = read(home, query).to_dict("records")
    assert row["mae_ratio_to_random"] == pytest.approx(0.75)
    assert (row["mae"], row["optimism"]) == (0.03, 0.01)
    assert (row["mae_lower"], row["mae_upper"]) == pytest.approx((0.02, 0.05))


def test_an_interval_of_a_candidates_own_goes_before_the_suites(home: Home) -> None:
    query = "SELECT * FROM lite_leaderboard WHERE suite = 'one'"
    rows = read(home, query).set_index("model")
    assert rows.loc["c1", ["macro_lower", "macro_upper"]].tolist() == [0.6, 0.79]
    middle = rows.loc["c1", "predicted_mean"]
    assert rows.loc["c1", "mean_upper"] == pytest.approx(middle + 0.02)
    assert rows["out_of_range"].to_dict() == {m: m == "c1" for m in rows.index}


# A failed test of a staging view skips the marts above it, so these are two builds.
STAGING_BREAKS = {
    "INSERT INTO lite_scores.task_scores SELECT * FROM lite_scores.task_scores LIMIT 1":
        "unique_key_stg_task_scores",
    "INSERT INTO lite_scores.task_scores BY NAME SELECT 'one' AS suite, 'Z' AS task, 'c1' AS model":
        "task_scores_of_the_lite_suite",
}  # fmt: skip
MART_BREAKS = {
    "UPDATE validation.validation_metrics SET value = -0.1 WHERE metric = 'mae'":
        "not_negative_validation_summary_mae",
    "UPDATE lite_scores.lite_suite_intervals SET half_width = -half_width":
        "predicted_inside_interval",
}  # fmt: skip


@pytest.mark.parametrize("breaks", [STAGING_BREAKS, MART_BREAKS], ids=["staging", "marts"])
def test_data_tests_catch_broken_rows(tmp_path: Path, breaks: dict[str, str]) -> None:
    home = Home(tmp_path / "home").prepare()
    fill(home, ["one"])
    with Warehouse(home.writer, home.snapshot).session() as connection:
        for statement in breaks:
            connection.execute(statement)
    done = build(home)
    assert done.returncode == 1
    failed = [line for line in done.stdout.splitlines() if " FAIL " in line]
    for test in breaks.values():
        assert any(test in line for line in failed), done.stdout


def board_of(path: Path, value: int) -> None:
    """Make a leaderboard as dbt would, in a file that nobody else has open."""
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE OR REPLACE TABLE lite_leaderboard AS SELECT {value} AS rank, "
            "(SELECT count(*) FROM ledger.partitions) AS n_made"
        )


def test_writers_do_not_wait_for_a_build_and_builds_take_turns(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    warehouse = Warehouse(home.writer, home.snapshot)
    reports = Reports(home.dbt, home.writer, home.snapshot)
    fill(home, ["one"])
    second_began = threading.Event()

    def write() -> None:
        with warehouse.session() as connection:
            entry = {"status": "ok", "code_version": "1", "settings_hash": "", "inputs": {}}
            write_ledger(connection, "asset", "meanwhile", entry)

    def build_second() -> None:
        with reports.building() as variables:
            second_began.set()
            board_of(Path(variables["MTEBLITE_WRITER"]), 2)

    with reports.building() as variables:
        writing, second = threading.Thread(target=write), threading.Thread(target=build_second)
        writing.start()
        second.start()
        writing.join(30)
        assert not writing.is_alive(), "a writer waits for dbt"
        assert not second_began.wait(1), "two builds go on at once"
        board_of(Path(variables["MTEBLITE_WRITER"]), 1)
    second.join(60)
    # The later build is of later rows; what was written meanwhile is there.
    assert read(home, "FROM lite_leaderboard").to_dict("records") == [{"rank": 2, "n_made": 1}]
    assert not list((home.dbt / "building").iterdir())
    assert len(warehouse.query("FROM lite_leaderboard")) == 1


def test_a_build_that_is_stopped_stores_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    fill(home, ["one"])
    reports = Reports(home.dbt, home.writer, home.snapshot)

    def build() -> None:
        with reports.building() as variables:
            board_of(Path(variables["MTEBLITE_WRITER"]), 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build()
    with pytest.raises(duckdb.CatalogException):
        read(home, "FROM lite_leaderboard")
    assert not list((home.dbt / "building").iterdir())


def test_report_command(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_suite.use_home(monkeypatch, home.root)
    code, out, err = tiny_suite.command("report", "--suite", "sample")
    assert code == 0, err
    assert "suite 'sample' has no predictions yet" in out
    (home.suites / "one.yaml").write_text(
        "{name: one, tasks: [LeeDocSTS], "
        "models: [{name: c1, family: new, role: candidate, path: x}]}"
    )
    code, out, err = tiny_suite.command("report", "--suite", "one")
    assert code == 0, err
    assert "Lite leaderboard of suite one" in out
    assert "80.00" in out or "70.00" in out  # points, not fractions
    assert str(home.snapshot) in out
    assert "Validation" in out


def reports_run(home: Home, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run of the models as the UI starts it."""
    tiny_suite.use_home(monkeypatch, home.root)
    session = Session()
    graph = session.definitions.resolve_asset_graph()
    keys = [k for k in graph.materializable_asset_keys if graph.get(k).group_name == "dbt_reports"]
    return session.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        run_config=QUIET,
        instance=session.instance,
        asset_selection=sorted(keys),
        raise_on_error=False,
    )


def test_dagster_learns_of_every_model_and_test(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = reports_run(home, monkeypatch)
    assert result.success
    made = {
        e.asset_key.to_user_string()
        for e in result.all_events
        if e.event_type_value == "ASSET_MATERIALIZATION"
    }
    assert {"lite_leaderboard", "validation_summary", "stg_suite_models"} <= made
    checks = result.get_asset_check_evaluations()
    assert len(checks) > 10
    assert all(check.passed for check in checks)


def test_a_data_test_that_fails_is_told_and_the_reports_are_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home").prepare()
    fill(home, ["one"])
    with Warehouse(home.writer, home.snapshot).session() as connection:
        connection.execute(next(iter(STAGING_BREAKS)))
    (home.suites / "one.yaml").write_text(
        "{name: one, tasks: [LeeDocSTS], models: [{name: c1, family: new, path: x}]}"
    )
    tiny_suite.use_home(monkeypatch, home.root)
    code, out, _ = tiny_suite.command("report", "--suite", "one", "--json")
    assert code == 1
    report = json.loads(out)
    assert report["failed_checks"] == [
        "stg_task_scores.unique_key_stg_task_scores_suite__task__model"
    ]
    assert "unique_key_stg_task_scores" in report["assets"]["dbt_reports"]["failed"]["all"]
    plan = tiny_suite.run_json("plan", "--suite", "one", "--stage", "dbt_reports")
    assert plan["assets"]["dbt_reports"]["run"] == ["all"]
    assert not reports_run(home, monkeypatch).success
