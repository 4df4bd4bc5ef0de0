"""Every task that the hub stand-in serves, through the command line up to the outcomes.

Nothing may fail, a second home must get the same bytes, and a run that is killed again and again
must end where an undisturbed one does.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import tiny_suite
from support.hub_tasks import TASKS

MODELS = ("package:wordllama-256", "package:wordllama-64", "package:glove-50d")
RANDOM = "mteb/baseline-random-encoder"
POOL = {"max_items": 60, "bm25_top": 10, "max_relevant": 20, "random_documents": 60, "seed": 0}
STAGES = ("suites", "pools", "embeddings", "outcomes")
KILLED = ("BIOSSES", "Tatoeba", "XQuADRetrieval")
KILLS = 10


def suite_text(name: str, tasks: tuple[str, ...], models: tuple[str, ...]) -> str:
    """The suite file of some of the tasks."""
    document = {
        "name": name,
        "tasks": [{"task": task, **TASKS[task]} for task in tasks],
        "k": 10,
        "pool": POOL,
        "models": [{"name": m, "family": m.split("-")[0]} for m in models],
    }
    return yaml.safe_dump(document, sort_keys=False)


def new_home(root: Path, *suite: Any) -> Path:
    """A home that has nothing but the suite file."""
    shutil.rmtree(root, ignore_errors=True)
    (root / "suites").mkdir(parents=True)
    (root / "suites" / f"{suite[0]}.yaml").write_text(suite_text(*suite))
    return root


def arguments(suite: str) -> list[str]:
    """`materialize` up to the outcomes."""
    return ["materialize", "--suite", suite, *(a for s in STAGES for a in ("--stage", s))]


def outcome_bytes(home: Path) -> bytes:
    """`outcomes.item_outcomes` in a fixed order, every bit of the numbers included."""
    columns = ["suite", "task", "model", "item_id"]
    frame = tiny_suite.table(home, "outcomes.item_outcomes").sort_values(columns)
    keys = frame[columns].to_csv(index=False).encode()
    return keys + frame["outcome"].to_numpy(float).tobytes()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`at(home)` points this process at a home."""
    return lambda home: tiny_suite.use_home(monkeypatch, home)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_all_tasks_go_through_and_twice_give_the_same_bytes(
    hub: Any, shared: Path, tmp_path: Path, at: Any
) -> None:
    served = {p.name for p in (shared / "data/hub/datasets/mteb").iterdir()}
    assert len(TASKS) == len(served), f"a task is missing here, or a data set there: {served}"
    found = []
    for number in range(2):
        home = new_home(tmp_path / f"home{number}", "all", tuple(TASKS), (*MODELS, RANDOM))
        at(home)
        report = tiny_suite.run_json(*arguments("all"))
        assert len(tiny_suite.ran(report)["item_outcomes"]) == len(TASKS) * 4
        frame = tiny_suite.table(home, "outcomes.item_outcomes")
        assert set(frame["task"]) == set(TASKS)
        assert set(frame["model"]) == {*MODELS, RANDOM}
        found.append(outcome_bytes(home))
    assert found[0] == found[1]


@pytest.fixture(scope="module")
def undisturbed(hub: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, float]:
    """The outcomes of a run that nobody kills, and how long it takes."""
    home = new_home(tmp_path_factory.mktemp("undisturbed") / "home", "killed", KILLED, MODELS[1:])
    for _ in range(2):  # the first one downloads, and warms the server that forks the runs
        home = new_home(home, "killed", KILLED, MODELS[1:])
        started = time.monotonic()
        process = tiny_suite.start(home, *arguments("killed"))
        process.join()
        assert process.exitcode == 0
        seconds = time.monotonic() - started
    return outcome_bytes(home), seconds


@pytest.mark.long
@pytest.mark.timeout(900)
def test_killed_ten_times_and_continued_gives_the_same_bytes(
    undisturbed: tuple[bytes, float], tmp_path: Path
) -> None:
    expected, seconds = undisturbed
    suite = ("killed", KILLED, MODELS[1:])
    home, log = new_home(tmp_path / "home", *suite), tmp_path / "log"
    moments = random.Random(20)
    kills = 0
    while kills < KILLS:
        process = tiny_suite.start(home, *arguments("killed"), log=log)
        process.join(moments.uniform(0.0, 0.6 * seconds))
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            kills += process.exitcode == -signal.SIGKILL
        else:  # it got to the end: compare, and begin again from nothing
            assert process.exitcode == 0, log.read_text()[-4000:]
            assert outcome_bytes(home) == expected
            home = new_home(home, *suite)
    process = tiny_suite.start(home, *arguments("killed"), log=log)
    process.join()
    assert process.exitcode == 0, log.read_text()[-4000:]
    assert outcome_bytes(home) == expected
