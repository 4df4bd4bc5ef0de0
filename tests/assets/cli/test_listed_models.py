"""Listed models without weights, and an mteb that differs from what was frozen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import tiny_suite
from support.tiny_suite import command, run_json

from mteblite.suites.resolution import FrozenTask, LeftOut, Resolution
from mteblite.tasks.mteb_tasks import MtebTasks
from mteblite_resources.frozen_tasks import packaged_resolution

PART = "name: part\nextends: eng-super\nonly: [STS12, BIOSSES]\nmodels: []\n"


def _models(suite: str) -> dict[str, Any]:
    return {m["model"]: m for m in run_json("models", "--suite", suite)}


def test_a_listed_private_checkpoint_takes_part_once_it_has_weights(
    bare_home: Path, tmp_path: Path
) -> None:
    before = _models("eng")["A-lin0.6"]
    assert (before["weights"], before["family"], before["role"]) == (
        False,
        "A-v3@6750",
        "reference",
    )
    folder = tiny_suite.write_model(tmp_path / "merge", "merge", 0.3)
    code, _, err = command("models", "add", "A-lin0.6", "--suite", "eng", "--path", str(folder))
    assert code == 0, err
    after = _models("eng")["A-lin0.6"]
    assert after == {**before, "weights": True, "path": str(folder)}
    plan = run_json("plan", "--suite", "eng", "--task", "STS12", "--model", "A-lin0.6")
    assert len(plan["stages"]["embeddings"]["run"]) == 1
    assert not _models("eng-super")["A-lin0.6"]["weights"]


def test_without_weights_it_has_no_partitions_and_is_said_to_be_skipped(bare_home: Path) -> None:
    plan = run_json("plan", "--suite", "eng", "--task", "STS12")
    assert len(plan["stages"]["embeddings"]["run"]) == 9
    assert not any(key.startswith("A-lin") for key in plan["stages"]["embeddings"]["run"])
    (note,) = plan["notes"]
    assert note.startswith("19 listed models are skipped")
    assert "models add NAME --suite eng --path FOLDER" in note


def test_listed_options_stay_where_none_are_given(bare_home: Path) -> None:
    (bare_home / "suites" / "part.yaml").write_text(
        PART.replace("[]\n", "[{name: a/b, family: f, prompt_strategy: category, "
                             "provenance: self_reported}]\n")
    )  # fmt: skip
    code, _, err = command("models", "add", "a/b", "--suite", "part", "--role", "candidate")
    assert code == 0, err
    model = _models("part")["a/b"]
    assert (model["family"], model["role"]) == ("f", "candidate")
    assert (model["prompt_strategy"], model["provenance"]) == ("category", "self_reported")


@pytest.fixture
def newer_mteb(monkeypatch: pytest.MonkeyPatch) -> None:
    """An mteb of another version, in which STS12 has another main score and BIOSSES is gone."""

    def benchmark(_: MtebTasks, name: str) -> Resolution:
        from mteblite.suites.suite_file import SuiteFile

        frozen = packaged_resolution(SuiteFile(name="eng-super", benchmark=name))
        assert frozen is not None
        changed = replace(frozen.tasks["STS12"].description, main_metric="cosine_pearson")
        tasks = {n: replace(t, mteb_version="9.9") for n, t in frozen.tasks.items()}
        tasks["STS12"] = FrozenTask(changed, "", "9.9")
        del tasks["BIOSSES"]
        return Resolution(tasks, name, (LeftOut("BIOSSES", "STS", "gone"),))

    monkeypatch.setattr(MtebTasks, "benchmark", benchmark)
    monkeypatch.setattr(MtebTasks, "mteb_version", lambda _: "9.9")


def test_difference_to_what_was_frozen_is_reported_and_never_taken(
    bare_home: Path, newer_mteb: None
) -> None:
    (bare_home / "suites" / "part.yaml").write_text(PART)
    notes = run_json("plan", "--suite", "part")["notes"]
    assert notes == ["the tasks were frozen with mteb 2.26.24; mteb 9.9 is installed"]
    code, out, err = command("--quiet", "materialize", "--suite", "part", "--stage", "suites",
                             "--json")  # fmt: skip
    assert code == 1
    assert json.loads(out)["failed_checks"] == ["suite_tasks.tasks_are_as_frozen"]
    assert "tasks_are_as_frozen" in err
    rows = run_json(
        "sql", "SELECT task, what, frozen, found FROM suites.mteb_differences ORDER BY task, what"
    )
    assert [tuple(r.values()) for r in rows] == [
        ("BIOSSES", "left_out", "", "gone"),
        ("BIOSSES", "present", "yes", "no"),
        ("STS12", "main_metric", "cosine_spearman", "cosine_pearson"),
    ]
    metric = run_json("sql", "SELECT main_metric, mteb_version FROM suites.suite_tasks "
                             "WHERE task = 'STS12'")  # fmt: skip
    assert metric == [{"main_metric": "cosine_spearman", "mteb_version": "2.26.24"}]
    _, _, err = command("status", "--suite", "part")
    assert "STS12: main_metric was 'cosine_spearman', is 'cosine_pearson'" in err


def test_difference_is_taken_when_somebody_accepts_it(bare_home: Path, newer_mteb: None) -> None:
    (bare_home / "suites" / "part.yaml").write_text(PART.replace("STS12, BIOSSES", "STS12"))
    code, out, err = command("tasks", "--suite", "part", "--refresh", "--json")
    assert code == 0, err
    assert [(t["task"], t["main_metric"]) for t in json.loads(out)] == [("STS12", "cosine_pearson")]
    assert "STS12: main_metric was 'cosine_spearman', is 'cosine_pearson'" in err
    code, _, err = command("--quiet", "materialize", "--suite", "part", "--stage", "suites")
    assert code == 0, err
    assert run_json("sql", "SELECT * FROM suites.mteb_differences") == []
