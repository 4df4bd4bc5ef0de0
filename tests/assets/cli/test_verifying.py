"""`verify`: full scores beside predictions, for the whole suite or for some tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.tiny_suite import CANDIDATE, SUITE, TASKS, command, run_json

NAME = CANDIDATE[0]


@pytest.fixture(autouse=True)
def as_found(home: Path) -> Iterator[None]:
    """Take the full scores back: other tests use the same home."""
    yield
    from mteblite_assets.graph.driver import forget_partitions
    from mteblite_assets.reference_scores.assets import candidate_full_scores
    from mteblite_resources.home import Home
    from mteblite_resources.workbench import Workbench

    bench = Workbench(Home(home))
    forget_partitions(candidate_full_scores, [f"{NAME}|{SUITE}"], bench)
    bench.warehouse.publish()


def rows(*arguments: str) -> dict[str, dict]:
    value = run_json("verify", NAME, "--suite", SUITE, *arguments)
    assert value["model"] == NAME
    return {row["target"]: row for row in value["targets"]}


def test_some_tasks_leave_the_partition_as_it_is(home: Path) -> None:
    found = rows("--task", "TinySTS")
    assert list(found) == ["TinySTS"]
    stored = "SELECT * FROM reference_scores.candidate_full_scores WHERE model = 'tiny-x'"
    whole = run_json("sql", stored)
    assert whole == [] or len(whole) == len(TASKS)
    assert found["TinySTS"]["full"] == pytest.approx(rows()["TinySTS"]["full"])


def test_whole_suite(home: Path) -> None:
    found = rows()
    assert list(found) == ["macro mean", *sorted(TASKS)]
    scores = {t["task"]: t for t in run_json("score", NAME, "--suite", SUITE)["tasks"]}
    for task in TASKS:
        row = found[task]
        assert row["predicted"] == scores[task]["predicted"]
        assert row["error"] == pytest.approx(row["predicted"] - row["full"])
        assert row["inside"] == (row["lower"] <= row["full"] <= row["upper"])
    mean = sum(found[t]["full"] for t in TASKS) / len(TASKS)  # one task of each type
    assert found["macro mean"]["full"] == pytest.approx(mean)
    code, out, err = command("--quiet", "verify", NAME, "--suite", SUITE)
    assert code == 0, err
    assert "of 3 full scores lie inside their interval" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((NAME, "--task", "TinySST"), "did you mean TinySTS"),
        (("tiny-b",), "tiny-b is a reference model"),
        (("./nowhere",), "no folder './nowhere'"),
    ],
)
def test_what_cannot_be_verified(home: Path, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = command("--quiet", "verify", *arguments, "--suite", SUITE)
    assert (code, out) == (2, "")
    assert words in err
