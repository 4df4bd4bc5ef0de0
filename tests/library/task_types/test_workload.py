"""Texts and tokens that a pool will hold, against statistics whose answer is known."""

from __future__ import annotations

from typing import Any

import pytest

from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.workload import Workload, estimate_workload
from mteblite.tasks.descriptive_stats import task_statistics

SETTINGS = PoolSettings()


def _task(kind: str, *subsets: str, split: str = "test") -> TaskDescription:
    return TaskDescription("T", kind, "m", (split,), subsets or ("default",))


def _text(n: int, length: float) -> dict[str, Any]:
    return {"unique_texts": n, "average_text_length": length}


def test_pairs_are_two_texts_each_up_to_the_cap() -> None:
    statistics = {"num_samples": 3000, "text1_statistics": _text(2900, 40.0),
                  "text2_statistics": _text(150, 8.0)}  # fmt: skip
    found = estimate_workload(_task("STS"), {"test": statistics}, SETTINGS, None)
    assert found == Workload(1000 + 150, 1000 * 10 + 150 * 2)


def test_token_cap_cuts_long_texts() -> None:
    statistics = {"num_samples": 10, "text_statistics": _text(10, 4000.0)}
    for cap, tokens in ((None, 10_000), (512, 5120)):
        found = estimate_workload(_task("Clustering"), {"test": statistics}, SETTINGS, cap)
        assert found == Workload(10, tokens)


def test_items_go_evenly_to_the_subsets_asked_for() -> None:
    cell = {"num_samples": 900, "text_statistics": _text(900, 4.0)}
    statistics = {"test": {**cell, "hf_subset_descriptive_stats": {"ar": cell, "en": cell,
                                                                   "fr": cell}}}  # fmt: skip
    found = estimate_workload(_task("Clustering", "ar", "en"), statistics, SETTINGS, None)
    assert found == Workload(1000, 1000)


def test_search_has_candidates_relevant_and_shared_documents_up_to_the_corpus() -> None:
    statistics = {
        "num_queries": 100, "queries_text_statistics": _text(100, 40.0),
        "documents_text_statistics": _text(1_000_000, 400.0), "top_ranked_statistics": None,
        "relevant_docs_statistics": {"average_relevant_docs_per_query": 2.0},
    }  # fmt: skip
    found = estimate_workload(_task("Retrieval"), {"test": statistics}, SETTINGS, None)
    assert found == Workload(100 + 100 * 32 + 1000, 100 * 10 + 4200 * 100)
    statistics["documents_text_statistics"] = _text(50, 400.0)
    found = estimate_workload(_task("Retrieval"), {"test": statistics}, SETTINGS, None)
    assert found is not None
    assert found.texts == 150


def test_parallel_targets_count_once() -> None:
    cell = {"num_samples": 500, "sentence1_statistics": _text(500, 4.0),
            "sentence2_statistics": _text(500, 4.0)}  # fmt: skip
    subsets = ("arb-eng", "ary-eng")
    statistics = {"test": {"hf_subset_descriptive_stats": dict.fromkeys(subsets, cell)}}
    found = estimate_workload(_task("BitextMining", *subsets), statistics, SETTINGS, None)
    assert found == Workload(1500, 1500)


def test_unknown_is_none() -> None:
    assert estimate_workload(_task("STS"), None, SETTINGS, None) is None
    assert estimate_workload(_task("STS", split="dev"), {"test": {}}, SETTINGS, None) is None
    assert task_statistics("NoSuchTask", "STS") is None


@pytest.mark.parametrize(
    ("task", "kind", "low", "high"),
    [
        ("STSBenchmark", "STS", 1500, 2000),
        ("SciFact", "Retrieval", 5000, 5483),
        ("Banking77Classification", "Classification", 1000, 10_000),
        ("SummEvalSummarization.v2", "Summarization", 2000, 2800),
    ],
)
def test_statistics_of_the_installed_mteb_are_read(
    task: str, kind: str, low: int, high: int
) -> None:
    found = estimate_workload(_task(kind), task_statistics(task, kind), SETTINGS, None)
    assert found is not None
    assert low <= found.texts <= high
    assert found.tokens > found.texts
