"""Frozen resolutions: which part still answers, how two of them differ, how they are written."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mteblite.suites.resolution import (
    FrozenTask,
    LeftOut,
    Resolution,
    applicable,
    differences,
    merged,
    resolution_from_json,
    resolution_to_json,
    task_digest,
)
from mteblite.suites.suite_file import SuiteTask
from mteblite.suites.task_description import TaskDescription

STS = TaskDescription("A", "STS", "cosine_spearman", ("test",), ("en", "ar"), "r1")
SEARCH = TaskDescription("B", "Retrieval", "ndcg_at_10", ("dev",), ("default",), "r2")
LEFT = LeftOut("C", "MultilabelClassification", "not supported")
WHOLE = Resolution(
    {"A": FrozenTask(STS, "", "1.0"), "B": FrozenTask(SEARCH, "", "1.0", "Whole")},
    "Bench",
    (LEFT,),
)


def _listed(*requests: SuiteTask) -> Resolution:
    tasks = {r.task: FrozenTask(replace(STS, task=r.task), task_digest(r), "1.0") for r in requests}
    return Resolution(tasks)


def test_json_round_trip() -> None:
    assert resolution_from_json(json.loads(json.dumps(resolution_to_json(WHOLE)))) == WHOLE
    assert resolution_from_json({"request": "old form"}) is None


def test_pairs_of_many_languages_are_written_as_the_languages() -> None:
    names = [f"l{i}" for i in range(40)]
    pairs = tuple(f"{a}-{b}" for a in names for b in names if a != b)
    for subsets, packed in ((pairs, True), (pairs[:-1], False)):
        task = replace(STS, hf_subsets=subsets)
        known = Resolution({"A": FrozenTask(task, "", "1.0")}, "Bench")
        written = resolution_to_json(known)
        assert isinstance(written["tasks"][0]["hf_subsets"], dict) == packed
        assert resolution_from_json(json.loads(json.dumps(written))) == known


def test_a_changed_request_is_asked_again_and_the_others_are_not() -> None:
    one, two = SuiteTask(task="A"), SuiteTask(task="B")
    frozen = _listed(one, two)
    assert applicable(frozen, [one, two], None) == frozen
    changed = SuiteTask(task="A", hf_subsets=["ar"])
    assert list(applicable(frozen, [changed, two], None).tasks) == ["B"]
    # K and the cap on items decide nothing that mteb is asked for.
    assert list(applicable(frozen, [SuiteTask(task="A", k=7, max_items=9)], None).tasks) == ["A"]


def test_another_benchmark_keeps_nothing_of_the_first() -> None:
    assert applicable(WHOLE, [], "Bench") == WHOLE
    other = applicable(WHOLE, [], "Other")
    assert (dict(other.tasks), other.benchmark, other.left_out) == ({}, None, ())


def test_the_homes_own_answer_wins_and_does_not_bring_back_what_it_lacks() -> None:
    newer = Resolution({"A": FrozenTask(STS, "", "2.0")}, "Bench")
    assert merged(newer, WHOLE) == newer
    assert merged(Resolution(), WHOLE) == WHOLE


@pytest.mark.parametrize(
    ("change", "what", "old", "new"),
    [
        ({"main_metric": "max_ap"}, "main_metric", "cosine_spearman", "max_ap"),
        ({"splits": ("dev",)}, "splits", "test", "dev"),
        ({"hf_subsets": ("en",)}, "hf_subsets", "en, ar", "en"),
        ({"dataset_revision": "r9"}, "dataset_revision", "r1", "r9"),
    ],
)
def test_every_changed_fact_is_a_difference(
    change: dict[str, object], what: str, old: str, new: str
) -> None:
    now = {**WHOLE.tasks, "A": FrozenTask(replace(STS, **change), "", "2.0")}  # type: ignore[arg-type]
    found = differences(WHOLE, replace(WHOLE, tasks=now))
    assert [(d.task, d.what, d.frozen, d.found) for d in found] == [("A", what, old, new)]


def test_tasks_that_came_went_or_are_left_out_otherwise_are_differences() -> None:
    assert differences(WHOLE, WHOLE) == []
    now = Resolution({"A": WHOLE.tasks["A"], "D": FrozenTask(STS, "", "2.0")}, "Bench")
    found = {(d.task, d.what): (d.frozen, d.found) for d in differences(WHOLE, now)}
    assert found == {
        ("B", "present"): ("yes", "no"),
        ("D", "present"): ("no", "yes"),
        ("C", "left_out"): ("not supported", ""),
    }
