"""What the daemon starts: exactly what the plan says, once, and nothing on a built home."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import duckdb
import pytest
import yaml
from support import tiny_suite
from support.ticks import Ticks, made_since
from support.tiny_suite import REFERENCES, SUITE

from mteblite_assets.cli.registering import add_model
from mteblite_assets.cli.session import Session
from mteblite_assets.flow import declarations
from mteblite_assets.graph.runs import KIND, PLAN, runs_in_progress


@pytest.fixture(autouse=True)
def ask_at_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this, files other than suite files are looked at once a minute."""
    monkeypatch.setattr("mteblite_assets.sensors.PLAN_SECONDS", 0)


@pytest.fixture(autouse=True)
def quick_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reports run without dbt, which takes seconds and has tests of its own."""
    monkeypatch.setattr("mteblite_assets.graph.dbt_assets.run_dbt", lambda _: ([], ""))


def plan() -> dict[str, set[str]]:
    """Return by asset what `mteblite plan` would run."""
    report = tiny_suite.run_json("plan", "--suite", SUITE)
    return {a: set(e["run"]) for a, e in report["assets"].items() if e["run"]}


def edit_suite(home: Path, **keys: object) -> None:
    path = home / "suites" / f"{SUITE}.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **keys}))


def add(home: Path, name: str, role: str) -> None:
    path = str(home.parent / "models" / name)
    add_model(Session(), SUITE, name, role=role, family="new", path=path)


def change_text(home: Path) -> None:
    path = home.parent / "data" / "TinySTS" / "pairs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["sentence1"] += " " + rows[1]["sentence1"].split()[0]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def overwrite(home: Path, name: str) -> None:
    tiny_suite.write_model(home.parent / "models" / name, "another", 0.4)


def lose_rows(home: Path) -> None:
    with duckdb.connect(str(home / "writer.duckdb")) as connection:
        connection.execute("DELETE FROM selections.selected_items WHERE rank > 1")


CHANGES: dict[str, Callable[[Path], None]] = {
    "a reference model": lambda home: add(home, "spare-1", "reference"),
    "a candidate": lambda home: add(home, "spare-2", "candidate"),
    "a candidate's files": lambda home: overwrite(home, tiny_suite.CANDIDATE[0]),
    "a reference model's files": lambda home: overwrite(home, next(iter(REFERENCES))),
    "a suite file": lambda home: edit_suite(home, k=5),
    "a method": lambda home: edit_suite(home, calibration="crossfit"),
    "a text of own data": change_text,
    "rows that vanished": lose_rows,
}
FIRST = {
    "a candidate": ["registered_models", "lite_scores", "dbt_reports"],
    "a candidate's files": ["lite_scores", "dbt_reports"],
    "a reference model's files": [
        "embedding_stats",
        "full_scores",
        "outcome_matrix",
        "dbt_reports",
    ],
    "a suite file": ["suite_tasks", "selected_items", "dbt_reports"],
    "a method": ["calibrations", "lite_suite", "dbt_reports"],
    "a text of own data": ["suite_tasks", "dbt_reports"],
    "rows that vanished": ["selected_items"],
}
"""Assets all of whose planned partitions run, whatever the results are."""


def test_twenty_ticks_on_a_built_home_start_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mteblite_assets.sensors.PLAN_SECONDS", 60)
    ticks = Ticks()
    assert [ticks.look() for _ in range(20)] == [[]] * 20
    assert ticks.message == "nothing is stale"


SHORT = ("a reference model", "a candidate", "a candidate's files", "rows that vanished")


@pytest.mark.parametrize(
    "change", [c if c in SHORT else pytest.param(c, marks=pytest.mark.long) for c in CHANGES]
)
def test_after_one_change_exactly_the_plan_runs_once(home: Path, change: str) -> None:
    ticks = Ticks()
    assert ticks.look() == []
    before = ticks.ledger()
    CHANGES[change](home)
    # Adding a model by command records it at once.
    planned = plan() | ({} if "registered_models" in plan() else made_since(before, ticks.ledger()))
    asked = ticks.until_quiet()
    assert len(asked) == 1
    assert asked[0].tags[KIND] == ("scores" if "a candidate" in change else "upkeep")
    made = made_since(before, ticks.ledger())
    # Equal results stop what follows them; nothing else runs.
    assert all(keys <= planned[asset] for asset, keys in made.items())
    exact = planned if change == "a reference model" else FIRST[change]
    assert {asset: made.get(asset) for asset in exact} == {a: planned[a] for a in exact}
    assert plan() == {}


def test_a_code_version_is_a_change(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = Ticks()
    before = ticks.ledger()
    declaration = declarations()["calibrations"]
    object.__setattr__(declaration, "code_version", f"{declaration.code_version}-new")
    try:
        planned = plan()
        (asked,) = ticks.until_quiet()
    finally:
        object.__setattr__(declaration, "code_version", declaration.code_version[:-4])
    assert asked.tags[KIND] == "upkeep"
    assert made_since(before, ticks.ledger())["calibrations"] == planned["calibrations"]


@pytest.mark.long
def test_a_returned_file_is_a_change_like_any_other(home: Path) -> None:
    ticks = Ticks()
    for k in (5, 6):
        edit_suite(home, k=k)
        assert len(ticks.until_quiet(quiet=2)) == 1


def test_files_that_are_being_copied_wait(home: Path) -> None:
    ticks = Ticks()
    for number in range(3):
        overwrite(home, next(iter(REFERENCES)))
        (home.parent / "models" / next(iter(REFERENCES)) / "extra.txt").write_text("x" * number)
        assert ticks.look() == []
        assert "two looks" in ticks.message
    assert len(ticks.look()) == 1


def test_a_suite_that_nobody_materialized_starts_nothing(empty_home: Path) -> None:
    ticks = Ticks()
    assert [ticks.look() for _ in range(3)] == [[]] * 3
    graph = ticks.session.definitions.resolve_asset_graph()
    for name in ("suite_tasks", "pool_items", "full_scores", "lite_scores"):
        assert (
            graph.get(dg.AssetKey(name)).partitions_def.get_partition_keys(
                dynamic_partitions_store=ticks.session.instance
            )
            == []
        ), name


def test_partitions_are_those_of_suites_in_use(home: Path) -> None:
    ticks = Ticks()
    graph = ticks.session.definitions.resolve_asset_graph()

    def keys(name: str) -> set[str]:
        definition = graph.get(dg.AssetKey(name)).partitions_def
        return set(definition.get_partition_keys(dynamic_partitions_store=ticks.session.instance))

    ledger = ticks.ledger()
    for name in ("suite_tasks", "pool_items", "embedding_stats", "full_scores", "item_parameters"):
        assert keys(name) == {key for asset, key in ledger if asset == name}, name
    assert keys("lite_scores") == {f"{tiny_suite.CANDIDATE[0]}|{SUITE}"}


def test_no_asset_has_a_second_judge(home: Path) -> None:
    definitions = Session().definitions
    graph = definitions.resolve_asset_graph()
    for key in graph.materializable_asset_keys:
        assert graph.get(key).automation_condition is None, key
    assert [s.name for s in definitions.sensors or []] == ["upkeep"]


def test_what_failed_is_not_tried_again_until_its_files_change(home: Path) -> None:
    ticks = Ticks()
    tiny_suite.write_model(home.parent / "models" / "nan", "nan", 1.0, nan=True)
    add(home, "nan", "candidate")
    assert len(ticks.until_quiet()) == 1
    assert ticks.ledger()["lite_scores", f"nan|{SUITE}"]["status"] == "failed"
    ticks.cursor = ""  # a daemon that was started again
    assert ticks.until_quiet() == []
    assert "1 partition is left as it is" in ticks.message
    tiny_suite.write_model(home.parent / "models" / "nan", "nan", 1.0)
    assert len(ticks.until_quiet()) == 1
    assert ticks.ledger()["lite_scores", f"nan|{SUITE}"]["status"] == "ok"


def test_a_folder_that_is_gone_removes_nothing(home: Path) -> None:
    ticks = Ticks()
    before = ticks.ledger()
    for name in (tiny_suite.CANDIDATE[0], next(iter(REFERENCES))):
        shutil.move(home.parent / "models" / name, home.parent / f"unmounted-{name}")
    assert ticks.until_quiet() == []
    assert "no folder at" in ticks.message
    assert ticks.ledger() == before


def test_a_run_that_ends_early_is_tried_three_times(home: Path) -> None:
    ticks = Ticks()
    edit_suite(home, k=5)
    digests = []
    for _ in range(8):
        for request in ticks.look():
            digests.append(request.tags[PLAN])
            ticks.session.instance.create_run_for_job(
                ticks.session.definitions.resolve_job_def("materialize"),
                run_config=request.run_config, tags=request.tags,
                status=dg.DagsterRunStatus.FAILURE,
            )  # fmt: skip
    assert digests == [digests[0]] * 3
    assert "ended early" in ticks.message


def test_a_new_checkpoint_does_not_wait_for_a_run(home: Path) -> None:
    ticks = Ticks()
    ticks.look()
    ticks.session.instance.create_run_for_job(
        ticks.session.definitions.resolve_job_def("materialize"),
        run_config={"ops": {"upkeep": {"config": {"suite": SUITE}}}},
        tags={KIND: "upkeep"}, status=dg.DagsterRunStatus.STARTED,
    )  # fmt: skip
    add(home, "spare-1", "reference")
    add(home, "spare-2", "candidate")
    ticks.look()
    (asked,) = ticks.look()
    assert asked.tags[KIND] == "scores"
    assert asked.run_config["ops"]["upkeep"]["config"]["models"] == ["spare-2"]
    assert int(asked.tags["dagster/priority"]) > 0
    assert "waits for run" not in ticks.message
    ticks.session.instance.create_run_for_job(
        ticks.session.definitions.resolve_job_def("materialize"),
        run_config=asked.run_config, tags=asked.tags, status=dg.DagsterRunStatus.STARTED,
    )  # fmt: skip
    assert ticks.look() == []  # it is being scored, and the reference model waits
    assert "waits for run" in ticks.message


def test_of_many_new_checkpoints_the_newest_come_first(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mteblite_assets.graph.judge.TOGETHER", 2)
    for number, name in enumerate(("spare-1", "spare-3", "spare-2")):
        add(home, name, "candidate")
        os.utime(home.parent / "models" / name, (1000 + number, 1000 + number))
    ticks = Ticks()
    ticks.look()
    asked = [r.run_config["ops"]["upkeep"]["config"]["models"] for r in ticks.look()]
    assert asked == [["spare-2", "spare-3"], ["spare-1"]]


def test_a_model_that_another_run_scores_is_left_to_it(home: Path) -> None:
    ticks = Ticks()
    add(home, "spare-2", "candidate")
    ticks.look()
    (asked,) = ticks.look()
    ticks.session.instance.create_run_for_job(
        ticks.session.definitions.resolve_job_def("materialize"),
        run_config=asked.run_config, tags=asked.tags, status=dg.DagsterRunStatus.STARTED,
    )  # fmt: skip
    report = tiny_suite.run_json("materialize", "--suite", SUITE, "--stage", "lite_scores")
    assert report["assets"]["lite_scores"]["run"] == []


@pytest.mark.parametrize("tag", ["", "1"])
def test_runs_of_killed_commands_do_not_count(home: Path, tag: str) -> None:
    session = Session()
    run = session.instance.create_run_for_job(
        session.definitions.resolve_job_def("materialize"),
        tags={"mteblite/process": tag or "999999999"},
        run_config={"ops": {"upkeep": {"config": {"suite": SUITE}}}},
        status=dg.DagsterRunStatus.STARTED,
    )
    assert len(runs_in_progress(session.instance)) == bool(tag)
    session.fail_dead_runs()
    found = session.instance.get_run_by_id(run.run_id)
    assert found is not None
    assert found.status is (dg.DagsterRunStatus.STARTED if tag else dg.DagsterRunStatus.FAILURE)
