"""A home of the version before the three floors goes on: nothing is lost, nothing runs again."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import kept_files, tiny_suite

FRESH = set(kept_files.expected()["fresh"]) - {"validation", "lite_scores"}
"""Validation runs again: its folds draw with other keys. What follows from it may run, too."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("simple_icd_10_cm", reason="the extra `sample` is not installed")
    unpacked = kept_files.unpack_home(tmp_path)
    # Its suite extends `sample`, which had these keys then.
    with (unpacked / "suites" / f"{kept_files.SUITE}.yaml").open("a", encoding="utf-8") as file:
        file.write("set_metric: {selection: anchorset}\nallocation: equal\n")
    tiny_suite.use_home(monkeypatch, unpacked)
    return unpacked


def test_what_was_computed_is_fresh_and_shown(home: Path) -> None:
    expected = kept_files.expected()
    plan = tiny_suite.run_json("plan", "--suite", kept_files.SUITE)["stages"]
    assert {s: plan[s]["fresh"] for s in FRESH} == {s: expected["fresh"][s] for s in FRESH}
    tiny_suite.run_json("report", "--suite", kept_files.SUITE)
    rows = tiny_suite.run_json("sql", "FROM lite_leaderboard")
    assert [r["model"] for r in rows] == [r["model"] for r in expected["lite_leaderboard"]]
    for row, before in zip(rows, expected["lite_leaderboard"], strict=True):
        assert row.pop("warnings") == "", "scores of before have no warnings"
        assert row == pytest.approx(before, abs=1e-9)


def test_a_model_is_scored_from_the_vectors_that_are_there(home: Path) -> None:
    score = tiny_suite.run_json("score", "package:glove-50d", "--suite", kept_files.SUITE)
    assert score["n_encoded"] == 0
    assert not (home / "vectors" / "index.duckdb").exists()
