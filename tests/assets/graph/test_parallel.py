"""Two runs and an analyst at once: no lock error, every row, and nothing stale at the end."""

from __future__ import annotations

import json
import time

import pytest
from support import tiny_suite
from support.tiny_suite import REFERENCES, SUITE, TASKS, table

QUERY = "SELECT model, count(*) AS n FROM outcomes.item_outcomes GROUP BY model ORDER BY model"


@pytest.mark.long
def test_two_runs_of_two_new_models_and_a_reader(home, upkeep):
    new = ("spare-1", "spare-2")
    for name in new:
        code, _, err = tiny_suite.command(
            "models", "add", name, "--suite", SUITE, "--role", "reference", "--family", name,
            "--path", str(home.parent / "models" / name),
        )  # fmt: skip
        assert code == 0, err
    logs = {name: home.parent / f"{name}.log" for name in new}
    runs = {
        name: tiny_suite.start(
            home, "materialize", "--suite", SUITE, "--model", name, log=logs[name]
        )
        for name in new
    }
    reads, deadline = [], time.monotonic() + 200
    while any(p.is_alive() for p in runs.values()) and time.monotonic() < deadline:
        reads.append(tiny_suite.command("sql", QUERY, "--json"))
        time.sleep(0.1)
    for name, process in runs.items():
        process.join(5)
        text = logs[name].read_text()
        assert process.exitcode == 0, text[-3000:]
        assert "lock" not in text.lower().replace("blocked", ""), text[-3000:]
    assert len(reads) > 3
    for code, out, err in reads:
        assert code == 0, err
        # A reader sees whole partitions: 40 items of each task that is there.
        assert all(row["n"] % 40 == 0 for row in json.loads(out))
    models = {*REFERENCES, *new}
    pool_scores = table(home, "outcomes.pool_scores")
    assert len(pool_scores) == len(models) * len(TASKS)
    assert set(table(home, "item_parameters.abilities")["model"]) == models
    assert set(table(home, "reference_scores.kept_models")["model"]) == models
    stale = {a: e["reasons"] for a, e in upkeep(command="plan")["assets"].items() if e["run"]}
    # Each run was about its own model; the candidate's scores on the new lite suite were not asked.
    assert stale == {"lite_scores": {f"tiny-x|{SUITE}": "input changed: lite_suite"}}
