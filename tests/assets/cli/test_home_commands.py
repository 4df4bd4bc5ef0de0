"""`mteblite home`, and every command on a home that has lost something."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from support import tiny_suite
from support.tiny_suite import CANDIDATE, SUITE, command

MODEL = CANDIDATE[0]
COUNT = "SELECT count(*) AS n FROM ledger.partitions"
COMMANDS = (
    ("sql", COUNT),
    ("status", "--suite", SUITE),
    ("plan", "--suite", SUITE),
    ("score", MODEL, "--suite", SUITE),
    ("materialize", "--suite", SUITE),
    ("report", "--suite", SUITE),
)
WRITE = """
import os, sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("CREATE TABLE IF NOT EXISTS client (n INTEGER)")
connection.execute("INSERT INTO client VALUES (1)")
print("open", flush=True)
sys.stdin.read() if sys.argv[2] == "stay" else os._exit(0)
"""


@pytest.fixture
def copied(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the materialized home beside it, so that own data have the same place."""
    copy = built.with_name("home-copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(built.with_name("pristine"), copy)
    (copy / "dagster" / "dagster.yaml").unlink()
    tiny_suite.use_home(monkeypatch, copy)
    yield copy
    shutil.rmtree(copy)


def edit(path: Path, sql: str) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(sql)


def check(*options: str, expect: int) -> dict[str, str]:
    """Run `home check` and return what was wrong, with what was said to do."""
    rows = tiny_suite.run_json("home", "check", *options, expect=expect)
    return {row["what"]: row["todo"] for row in rows if row["state"] != "good"}


@contextmanager
def client(path: Path, how: str) -> Iterator[None]:
    """A program that writes into a file, and stays or dies without closing it."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE, str(path), how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    if how == "die":
        process.wait()
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_rows_that_vanish_are_counted_and_made_again(copied):
    edit(copied / "writer.duckdb", "DELETE FROM selections.selected_items WHERE rank > 1")
    scope = ("--suite", SUITE, "--stage", "lite_scores", "--force")
    code, _, err = command("--quiet", "materialize", *scope)
    assert code == 1
    assert "lite_suite tiny: its input selected_items tiny/TinySTS: 1 of 6 rows are there" in err
    report = tiny_suite.run_json("materialize", "--suite", SUITE)
    assert len(report["assets"]["selected_items"]["run"]) == 3
    # Equal rows as before: nothing below the selections but the suite that had failed runs again.
    assert set(tiny_suite.ran(report)) == {"selected_items", "lite_suite"}
    assert tiny_suite.counts(tiny_suite.run_json("plan", "--suite", SUITE)) == {}


@pytest.mark.parametrize(
    ("change", "partition", "said"),
    [
        ("DELETE FROM {} WHERE task = 'TinySTS' AND rank > 1", "selected_items tiny/TinySTS",
         "1 of 6"),
        ("INSERT INTO {0} SELECT * FROM {0} WHERE task = 'TinySearch'",
         "selected_items tiny/TinySearch", "12 of 6"),
        ("DELETE FROM lite_scores.type_scores", "lite_scores tiny-x|tiny", "22 of 25"),
    ],
)  # fmt: skip
def test_plan_status_and_a_run_of_the_suite_count_rows(copied, change, partition, said):
    edit(copied / "writer.duckdb", change.format("selections.selected_items"))
    asset, key = partition.split(" ", 1)
    reason = f"damaged: {said} rows are there"
    plan = tiny_suite.run_json("plan", "--suite", SUITE)["assets"]
    assert plan[asset]["reasons"][key] == reason
    stages = tiny_suite.run_json("status", "--suite", SUITE)
    (found,) = [r for stage in stages for r in stage["reasons"]]
    assert (found["state"], found["reason"], found["first"]) == ("stale", reason, partition)
    # Equal rows as before: nothing below runs again.
    report = tiny_suite.run_json("materialize", "--suite", SUITE)
    assert tiny_suite.ran(report) == {asset: [key]}
    assert check(expect=0) == {}


def test_one_materialize_finds_damage_and_mends_it(copied):
    edit(copied / "writer.duckdb", "DELETE FROM selections.selected_items WHERE rank > 1")
    document = tiny_suite.suite_document()
    tiny_suite.write_suite(copied, document | {"calibration": "offset"})
    report = tiny_suite.run_json("materialize", "--suite", SUITE)
    assert report["failed_checks"] == []
    assert len(report["assets"]["selected_items"]["run"]) == 3


def test_a_forced_run_sees_rows_that_were_changed(copied):
    edit(copied / "writer.duckdb", "UPDATE selections.selected_items SET weight = 2 * weight")
    scope = ("--suite", SUITE, "--stage", "lite_scores")
    assert command("--quiet", "materialize", *scope)[0] == 0  # it is fresh, and reads nothing
    code, _, err = command("--quiet", "materialize", *scope, "--force")
    assert code == 1
    assert "its rows are other ones than were made" in err


def test_a_whole_home_is_good(copied):
    assert check(expect=0) == {}


def test_all_that_is_damaged_is_named_and_mended(copied):
    home = copied
    edit(home / "writer.duckdb", "UPDATE selections.selected_items SET weight = 2 * weight")
    pool, vectors, array = (
        next(home.glob(pattern))
        for pattern in ("pools/*/*/texts.parquet", "vectors/*/*/*.npy", "observations/*.npy")
    )
    pool.write_bytes(b"no pool")
    for path in (vectors, array):
        path.write_bytes(path.read_bytes()[:-3] + b"end")
    (home / "observations" / "left.npy").write_bytes(b"")
    (home / ".mteblite.duckdb.99").write_bytes(b"")
    store = home / "dagster" / "schedules" / "schedules.db"
    store.write_bytes(b"no database " * 1000)
    record = home / "models" / SUITE / "m.json"
    record.parent.mkdir()
    record.write_text("{")
    named = "\n".join(check(expect=1))
    for path in (pool.parent, vectors, array, home / "observations" / "left.npy", store, record):
        assert str(path.relative_to(home)) in named
    for name in ("selected_items tiny/TinySTS", ".mteblite.duckdb.99", "snapshot"):
        assert name in named
    check("--repair", expect=1)
    assert "delete it, then add or remove" in command("home", "check")[1]
    record.unlink()
    report = tiny_suite.run_json("materialize", "--suite", SUITE)
    assert {"pool_items", "item_outcomes", "selected_items"} <= set(tiny_suite.ran(report))
    assert check(expect=0) == {}


def test_a_damaged_release_is_named(copied, tmp_path):
    assert command("--quiet", "export", "--suite", SUITE, "--out", str(tmp_path / "out"))[0] == 0
    (release,) = (copied / "exports" / SUITE).iterdir()
    left = release.with_name(f".{release.name}.killed")
    left.mkdir()
    with next(release.glob("tasks/*/fitted.json")).open("a") as file:
        file.write(" ")
    wrong = check(expect=1)
    assert set(wrong) == {
        f"release exports/{SUITE}/{release.name}", f"scratch folder exports/{SUITE}/{left.name}",
    }  # fmt: skip
    check("--repair", expect=1)
    assert not left.exists()
    shutil.rmtree(release)
    out = str(tmp_path / "again")
    assert command("--quiet", "export", "--suite", SUITE, "--out", out)[0] == 0
    assert check(expect=0) == {}


def test_an_edited_snapshot_is_noticed_and_no_score_is_printed_from_it(copied):
    before = tiny_suite.run_json("score", MODEL, "--suite", SUITE)
    edit(copied / "mteblite.duckdb", "UPDATE lite_scores.suite_scores SET macro_mean = 0.99")
    assert tiny_suite.run_json("score", MODEL, "--suite", SUITE) == before
    (wrong,) = check(expect=1)
    assert "snapshot" in wrong
    assert "published again" in check("--repair", expect=0)[wrong]
    assert check(expect=0) == {}


def test_a_lost_writer_stops_all_but_reading_and_is_restored(copied):
    (copied / "writer.duckdb").unlink()
    for words in COMMANDS[1:]:
        code, out, err = command("--quiet", *words)
        assert (code, out) == (1, ""), words
        assert len(err.splitlines()) == 1, words
        assert "mteblite home restore" in err, words
    code, out, err = command("--quiet", *COMMANDS[0], "--json")
    assert code == 0
    assert "mteblite home restore" in err
    assert command("home", "restore")[0] == 0
    assert tiny_suite.counts(tiny_suite.run_json("plan", "--suite", SUITE)) == {}
    code, _, err = command("home", "restore")
    assert code == 2
    assert "is whole" in err


@pytest.mark.parametrize("how", ["die", "stay"])
@pytest.mark.long
def test_a_client_of_the_snapshot_stops_no_command(copied, how):
    for words in COMMANDS:
        with client(copied / "mteblite.duckdb", how):
            code, _, err = command("--quiet", *words)
            assert code == 0, f"{words}: {err}"


def test_a_deleted_snapshot_comes_back_with_the_next_question(copied):
    (copied / "mteblite.duckdb").unlink()
    assert tiny_suite.run_json("sql", COUNT)[0]["n"] > 50
    (copied / "mteblite.duckdb").unlink()
    assert command("--quiet", "score", MODEL, "--suite", SUITE)[0] == 0


def test_a_damaged_store_of_dagster_is_one_sentence(copied):
    (copied / "dagster" / "history" / "runs.db").write_bytes(b"no database " * 1000)
    code, _, err = command("--quiet", "materialize", "--suite", SUITE)
    assert code == 1
    assert "damaged" in err.splitlines()[-1]
    assert "mteblite home check --repair" in err.splitlines()[-1]
    check("--repair", expect=0)
    assert command("--quiet", "materialize", "--suite", SUITE)[0] == 0


def test_an_empty_home_is_good(bare_home):
    assert check(expect=0) == {}
