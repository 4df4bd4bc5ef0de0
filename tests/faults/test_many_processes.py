"""Runs, scores, writers and readers at once: no lock error, every row, no half of a partition."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path

import pytest
from support import tiny_suite
from support.tiny_suite import CANDIDATE, REFERENCES, SUITE, TASKS, table

from mteblite_resources.database.ledger import write_ledger
from mteblite_resources.warehouse import Warehouse

QUERY = "SELECT model, count(*) AS n FROM outcomes.item_outcomes GROUP BY model ORDER BY model"
ENTRY = {"status": "ok", "code_version": "1", "settings_hash": "s", "inputs": {}}
NEW = ("spare-1", "spare-2")
SCORED = (CANDIDATE[0], "spare-3", "run-1", "run-2")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_four_scores_beside_two_builds_with_a_reader(home, upkeep):
    models = home.parent / "models"
    for name in ("run-1", "run-2"):
        tiny_suite.write_model(models / name, name, 0.9)
    for name in NEW:
        code, _, err = tiny_suite.command(
            "models", "add", name, "--suite", SUITE, "--role", "reference", "--family", name,
            "--path", str(models / name),
        )  # fmt: skip
        assert code == 0, err
    words = {name: ("materialize", "--suite", SUITE, "--model", name) for name in NEW}
    words |= {name: ("score", str(models / name), "--suite", SUITE) for name in SCORED}
    logs = {name: home.parent / f"{name}.log" for name in words}
    processes = {name: tiny_suite.start(home, *w, log=logs[name]) for name, w in words.items()}
    reads, deadline = [], time.monotonic() + 400
    while any(p.is_alive() for p in processes.values()) and time.monotonic() < deadline:
        reads.append(tiny_suite.command("sql", QUERY, "--json"))
        time.sleep(0.1)
    for name, process in processes.items():
        process.join(5)
        text = logs[name].read_text()
        assert process.exitcode == 0, text[-3000:]
        assert "lock" not in text.lower().replace("blocked", ""), text[-3000:]
    assert len(reads) > 3
    for code, out, err in reads:
        assert code == 0, err
        # A reader sees whole partitions: 40 items of each task that is there.
        assert all(row["n"] % 40 == 0 for row in json.loads(out))
    known = {*REFERENCES, *NEW}
    pool_scores = table(home, "outcomes.pool_scores")
    assert len(pool_scores) == len(known) * len(TASKS)
    assert set(table(home, "item_parameters.abilities")["model"]) == known
    assert set(table(home, "reference_scores.kept_models")["model"]) == known
    assert set(table(home, "lite_scores.suite_scores")["model"]) == set(SCORED)
    # Each run was about its own model: scores of before the last lite suite are out of date.
    plan = upkeep(command="plan")["assets"]
    assert {asset for asset, entry in plan.items() if entry["run"]} <= {"lite_scores"}
    assert set(plan["lite_scores"]["reasons"].values()) <= {"input changed: lite_suite"}


WRITERS = [(4, 10), pytest.param(8, 100, marks=pytest.mark.long)]


@pytest.mark.parametrize(("writers", "transactions"), WRITERS)
def test_no_row_of_many_writers_is_lost(tmp_path, writers, transactions):
    """A transaction stores two rows; readers never see one without the other."""
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=_write, args=(tmp_path, number, transactions))
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    warehouse, seen = _warehouse(tmp_path), []
    while any(p.is_alive() for p in processes):
        if warehouse.snapshot.exists():
            rows = warehouse.query("SELECT partition_key FROM ledger.partitions")
            seen.append(set(rows["partition_key"]))
        time.sleep(0.05)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert seen
    for keys in seen:
        first, second = ({k[:-1] for k in keys if k.endswith(half)} for half in "ab")
        assert first == second
    made = {f"{w} {n} {half}" for w in range(writers) for n in range(transactions) for half in "ab"}
    assert {key for _, key in warehouse.ledger()} == made


def _warehouse(folder: Path) -> Warehouse:
    return Warehouse(folder / "writer.duckdb", folder / "mteblite.duckdb")


def _write(folder: Path, writer: int, transactions: int) -> None:
    warehouse = _warehouse(folder)
    for number in range(transactions):
        with warehouse.session() as connection:
            for half in "ab":
                write_ledger(connection, "asset", f"{writer} {number} {half}", ENTRY)
        if number % 10 == 0:
            warehouse.publish()
