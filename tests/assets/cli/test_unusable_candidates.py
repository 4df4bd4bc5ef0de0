"""Candidates whose folder is gone or that were refused: listed, not run again, no failure."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import tiny_suite
from support.tiny_suite import SUITE, command, run_json

from mteblite_assets.flow import declarations
from mteblite_assets.graph.plan import why_unusable
from mteblite_assets.graph.requirements import Requirement

ENTRY = {"status": "failed", "reason": "vectors hold NaN", "settings_hash": "s",
         "code_version": "1", "inputs": {"lite_suite": "v"}}  # fmt: skip
NEED = Requirement("1", "s", {"lite_suite": "v"})
GONE = Requirement("1", "", {}, blocked="no folder", unreadable=True)


@pytest.mark.parametrize(
    ("asset", "entry", "need", "reason"),
    [
        ("lite_scores", ENTRY, NEED, "vectors hold NaN"),
        ("lite_scores", None, NEED, ""),
        ("lite_scores", {**ENTRY, "status": "ok"}, NEED, ""),
        ("lite_scores", {**ENTRY, "settings_hash": "other files"}, NEED, ""),
        ("lite_scores", {**ENTRY, "inputs": {"lite_suite": "w"}}, NEED, ""),
        ("lite_scores", {**ENTRY, "reason": "MemoryError: no room"}, NEED, ""),
        ("lite_scores", {**ENTRY, "reason": "no folder", "settings_hash": "", "inputs": {}},
         GONE, "no folder"),
        ("lite_scores", ENTRY, GONE, ""),
        ("item_outcomes", ENTRY, NEED, ""),
    ],
)  # fmt: skip
def test_what_is_not_run_again(asset, entry, need, reason) -> None:
    assert why_unusable(declarations()[asset], entry, need) == reason


@pytest.fixture
def checkpoints(home: Path) -> Iterator[Path]:
    """Two candidates of a run, the second one of which is refused when it runs."""
    run = home.parent / "models" / "run-7"
    tiny_suite.write_model(run / "step-1", "step-1", 0.7)
    tiny_suite.write_model(run / "step-2", "step-2", 0.7, nan=True)
    for name in ("step-1", "step-2"):
        code, _, err = command(
            "models", "add", f"run-7/{name}", "--suite", SUITE, "--path", str(run / name)
        )
        assert code == 0, err
    yield run
    command("models", "remove", "run-7/*", "--suite", SUITE)
    shutil.rmtree(run, ignore_errors=True)


def materialize() -> tuple[dict, int]:
    code, out, _ = command("--quiet", "materialize", "--suite", SUITE, "--stage", "lite_scores",
                           "--json")  # fmt: skip
    return json.loads(out), code


def test_refused_and_vanished_candidates_do_not_fail_the_suite(checkpoints: Path) -> None:
    report, code = materialize()
    assert code == 0
    assert list(report["unusable"]) == ["run-7/step-2"]
    assert "NaN" in report["unusable"]["run-7/step-2"]
    shutil.rmtree(checkpoints / "step-1")
    report, code = materialize()
    assert (code, set(report["unusable"])) == (0, {"run-7/step-1", "run-7/step-2"})
    again, code = materialize()
    assert (code, again["unusable"]) == (0, report["unusable"])
    assert again["assets"]["lite_scores"]["run"] == []

    problems = {m["model"]: m["problem"] for m in run_json("models", "--suite", SUITE)}
    assert problems["run-7/step-1"] == "folder is gone"
    assert "NaN" in problems["run-7/step-2"]
    assert problems["tiny-x"] is None
    stage = {s["stage"]: s for s in run_json("status", "--suite", SUITE)}["lite_scores"]
    assert stage["failed"] == 2
    assert {r["first"] for r in stage["reasons"]} == {
        "lite_scores run-7/step-1|tiny", "lite_scores run-7/step-2|tiny",
    }  # fmt: skip

    code, out, err = command("--quiet", "score", "run-7/step-1", "--suite", SUITE)
    assert code == 0, err
    assert err.startswith("note: the folder")
    assert "macro mean" in out
    code, _, err = command("--quiet", "score", "run-7/step-2", "--suite", SUITE)
    assert code == 1
    assert err.startswith("failed: ")

    # Mended, it runs by itself.
    tiny_suite.write_model(checkpoints / "step-2", "step-2", 0.7)
    report, code = materialize()
    assert (code, set(report["unusable"])) == (0, {"run-7/step-1"})
    assert report["assets"]["lite_scores"]["run"] == ["run-7/step-2|tiny"]


def test_a_pattern_removes_all_that_it_matches(checkpoints: Path) -> None:
    code, out, err = command("models", "remove", "run-8/*", "--suite", SUITE)
    assert (code, out) == (2, "")
    assert "no model 'run-8/*'" in err
    assert "run-7/step-1" in err  # what there is
    code, out, _ = command("models", "remove", "*step*", "--suite", SUITE)
    assert code == 0
    assert out.splitlines() == [
        f"run-7/{name}: no longer in suite {SUITE}" for name in ("step-1", "step-2")
    ]


def test_a_new_model_that_cannot_be_scored_does_not_stay_registered(
    home: Path, tmp_path: Path
) -> None:
    folder = tiny_suite.write_model(tmp_path / "broken", "broken", 1.0, nan=True)
    code, _, err = command("--quiet", "score", str(folder), "--suite", SUITE)
    assert code == 1
    assert err.splitlines()[-1] == f"note: broken is not registered with suite {SUITE}"
    assert "broken" not in {m["model"] for m in run_json("models", "--suite", SUITE)}
