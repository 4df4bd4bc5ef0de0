"""Official results in the graph: the plan says what would run and why, equal results stop it."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest
import yaml
from support import tiny_suite
from support.official_world import new_result, put, subsets
from support.tiny_suite import ran, table

STAGES = ("--stage", "suites", "--stage", "reference_scores")


def write_score(folder: Path, score: float) -> Path:
    return put(folder, new_result("TinySTS", scores=subsets(default=score)), model="m")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one model and one task, whose score a mirror of results has."""
    home = tmp_path / "home"
    (home / "suites").mkdir(parents=True)
    tiny_suite.use_home(monkeypatch, home)
    tiny_suite.write_data(tmp_path / "data")
    tiny_suite.write_model(tmp_path / "models" / "m", "m", 0.5)
    document = {
        "name": "mine", "k": 5, "reference_scores": ["official", "run"],
        "tasks": [{"task": "TinySTS", "type": "STS", "path": "data/TinySTS"}],
        "models": [{"name": "m", "family": "m", "path": "models/m"},
                   {"name": "m+norm", "family": "m", "path": "models/m"}],
    }  # fmt: skip
    tiny_suite.write_suite(home, document)
    folder = tmp_path / "mirror"
    write_score(folder, 0.625)
    monkeypatch.setenv("MTEBLITE_OFFICIAL_SCORES", str(folder))
    return folder


def run(command: str) -> dict:
    return tiny_suite.run_json(command, "--suite", "mine", *STAGES)


def test_a_changed_file_runs_what_hangs_on_it_and_an_equal_one_nothing(mirror, tmp_path):
    home = tmp_path / "home"
    report = run("materialize")
    assert report["stages"]["reference_scores"]["run"]
    rows = table(home, "reference_scores.full_scores").set_index("model")
    assert rows.loc["m", ["source", "main_score"]].tolist() == ["official", 0.625]
    # A variant is a model of its own: nobody published its score.
    assert rows.loc["m+norm", "source"] == "run"
    assert ran(run("plan")) == {}

    path = write_score(mirror, 0.75)
    planned = run("plan")
    made = ran(planned)
    assert {"official_results", "public_scores", "full_scores"} <= set(made)
    assert made["official_results"] == ["official"]
    reasons = planned["stages"]["reference_scores"]["reasons"]
    assert reasons["official"] == "settings changed"
    report = run("materialize")
    assert len(ran(report)["full_scores"]) == 2
    rows = table(home, "reference_scores.full_scores").set_index("model")
    assert rows.loc["m", "main_score"] == 0.75

    os.utime(path, ns=(1, 1))  # written again with equal content
    assert ran(run("materialize")) == {"official_results": ["official"]}


def test_own_data_is_run_where_official_scores_alone_are_asked_for(mirror, tmp_path, monkeypatch):
    """None are set, and nobody has any of a user's own data: the suite goes on all the same."""
    home = tmp_path / "home"
    monkeypatch.delenv("MTEBLITE_OFFICIAL_SCORES")
    document = yaml.safe_load((home / "suites" / "mine.yaml").read_text())
    tiny_suite.write_suite(home, {**document, "reference_scores": ["official"]})
    report = run("materialize")
    assert report["failed_checks"] == []
    rows = table(home, "reference_scores.full_scores").set_index("model")
    assert rows["source"].to_dict() == {"m": "run", "m+norm": "run"}
    assert ran(run("plan")) == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DELETE FROM reference_scores.ingested_files", "0 of 1 files are there"),
        ("UPDATE reference_scores.ingested_cells SET main_score = 0.5",
         "their rows are other ones than were read"),
    ],
)  # fmt: skip
def test_stored_results_that_were_changed_are_noticed_and_read_again(
    mirror, tmp_path, monkeypatch, change, said
):
    run("materialize")
    with duckdb.connect(str(tmp_path / "home" / "writer.duckdb")) as connection:
        connection.execute(change)
    (wrong,) = (r for r in tiny_suite.run_json("home", "check", expect=1) if r["state"] == said)
    assert wrong["what"] == "official results"
    with monkeypatch.context() as patch:
        patch.delenv("MTEBLITE_OFFICIAL_SCORES")
        tiny_suite.run_json("home", "check", "--repair", expect=1)
    tiny_suite.run_json("home", "check", "--repair")
    report = run("materialize")
    assert set(ran(report)) == {"official_results"}
    assert tiny_suite.run_json("home", "check")
    cells = table(tmp_path / "home", "reference_scores.ingested_cells")
    assert cells["main_score"].tolist() == [0.625]
