"""How many texts and tokens a pool will hold, before any data is there.

mteb ships descriptive statistics of its tasks (`descriptive_stats/<type>/<task>.json`): numbers of
rows and mean lengths in characters per split and subset. From these and the caps of a pool its
texts follow, to within a factor of two: candidate lists of queries overlap (the numbers of
retrieval tasks are upper bounds), and some classification tasks draw more train rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mteblite.pools.items import split_evenly
from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.task_description import TaskDescription

CHARACTERS_PER_TOKEN = 4.0
"""Of English in WordPiece and of Arabic in XLM-R's vocabulary alike, within a fifth."""

LEAST_RANDOM_DOCUMENTS = 200
DISTRACTORS = 1000
TRAIN_ROWS_PER_LABEL = 8
EXPERIMENTS = 10
"""Train rows that mteb's classification draws by default; some tasks draw 16 or 32 a label."""

Statistics = Mapping[str, Any]
Cell = tuple[str, str]
Kind = tuple[float, float]
"""Number of texts of one kind, and their mean length in characters."""


@dataclass(frozen=True)
class Workload:
    """Distinct texts of a pool, and their tokens."""

    texts: int
    tokens: int


def estimate_workload(
    description: TaskDescription,
    statistics: Statistics | None,
    settings: PoolSettings,
    max_tokens: int | None,
) -> Workload | None:
    """Return what a task's pool will hold, or None where nothing is known of it.

    Args:
        description: the task.
        statistics: mteb's descriptive statistics of it, by split.
        settings: caps of its pool.
        max_tokens: the suite's token cap; without one, texts count whole.
    """
    cells = {
        (split, subset): known
        for split in description.splits
        for subset in description.hf_subsets
        if (known := _cell_statistics(statistics, split, subset)) is not None
    }
    kinds = _KINDS.get(description.task_type)
    if not cells or kinds is None:
        return None
    available = {cell: int(_rows(description.task_type, s)) for cell, s in cells.items()}
    quota = split_evenly(available, settings.max_items)
    try:
        found = [
            k for cell, s in cells.items() for k in kinds(s, quota[cell], settings, len(cells))
        ]
        if description.task_type == "BitextMining":
            found += _targets(cells, quota)
    except (KeyError, TypeError):  # an older form of the statistics
        return None
    texts = sum(n for n, _ in found)
    cap = max_tokens or math.inf
    tokens = sum(n * min(max(c / CHARACTERS_PER_TOKEN, 1.0), cap) for n, c in found)
    return Workload(round(texts), round(tokens))


def _cell_statistics(statistics: Statistics | None, split: str, subset: str) -> Statistics | None:
    of_split = (statistics or {}).get(split)
    if of_split is None:
        return None
    subsets = of_split.get("hf_subset_descriptive_stats")
    return of_split if subsets is None else subsets.get(subset)


def _rows(task_type: str, statistics: Statistics) -> float:
    if task_type in ("Retrieval", "Reranking"):
        return float(
            statistics.get("num_queries") or _kind(statistics["queries_text_statistics"])[0]
        )
    return float(statistics["num_samples"])


def _kind(statistics: Statistics) -> Kind:
    """Distinct texts and their mean length, from mteb's statistics of a text column."""
    return float(statistics["unique_texts"]), float(statistics["average_text_length"])


def _search(
    statistics: Statistics, n_items: int, settings: PoolSettings, n_cells: int
) -> list[Kind]:
    documents, length = _kind(statistics["documents_text_statistics"])
    _, query_length = _kind(statistics["queries_text_statistics"])
    lists = statistics.get("top_ranked_statistics")
    relevant = float(statistics["relevant_docs_statistics"]["average_relevant_docs_per_query"])
    relevant = min(relevant, settings.max_relevant or math.inf)
    if lists:
        wanted = n_items * float(lists["average_top_ranked_per_query"])
    elif settings.bm25_top is None or settings.random_documents is None:
        wanted = documents
    else:
        shared = settings.random_documents
        if n_cells > 1:
            shared = max(min(LEAST_RANDOM_DOCUMENTS, shared), shared // n_cells)
        wanted = n_items * (settings.bm25_top + relevant) + shared
    return [(n_items, query_length), (min(documents, wanted), length)]


def _classification(
    statistics: Statistics, n_items: int, settings: PoolSettings, n_cells: int
) -> list[Kind]:
    _, length = _kind(statistics["text_statistics"])
    labels = float(statistics["label_statistics"]["unique_labels"])
    train = labels * TRAIN_ROWS_PER_LABEL * EXPERIMENTS
    return [(n_items, length), (train, length)]


def _pairs(
    statistics: Statistics, n_items: int, settings: PoolSettings, n_cells: int
) -> list[Kind]:
    return [
        (min(n_items, n), length)
        for n, length in map(
            _kind, (statistics["text1_statistics"], statistics["text2_statistics"])
        )
    ]


def _clustering(
    statistics: Statistics, n_items: int, settings: PoolSettings, n_cells: int
) -> list[Kind]:
    n, length = _kind(statistics["text_statistics"])
    return [(min(n_items, n), length)]


def _summaries(
    statistics: Statistics, n_items: int, settings: PoolSettings, n_cells: int
) -> list[Kind]:
    share = n_items / float(statistics["num_samples"])
    kinds = ("human_summaries_statistics", "machine_summaries_statistics")
    return [(share * n, length) for n, length in (_kind(statistics[k]) for k in kinds)]


def _sources(
    statistics: Statistics, n_items: int, settings: PoolSettings, n_cells: int
) -> list[Kind]:
    n, length = _kind(statistics["sentence1_statistics"])
    return [(min(n_items, n), length)]


def _targets(cells: Mapping[Cell, Statistics], quota: Mapping[Cell, int]) -> list[Kind]:
    """Targets with their distractors; parallel subsets share those of one target language."""
    shared: dict[tuple[str, str, float], Kind] = {}
    for (split, subset), statistics in cells.items():
        n, length = _kind(statistics["sentence2_statistics"])
        key = (split, subset.split("-")[-1], n)
        texts = min(n, quota[split, subset] + DISTRACTORS)
        shared[key] = max(shared.get(key, (0.0, 0.0)), (texts, length))
    return list(shared.values())


_KINDS: dict[str, Callable[[Statistics, int, PoolSettings, int], list[Kind]]] = {
    "Retrieval": _search,
    "Reranking": _search,
    "Classification": _classification,
    "PairClassification": _pairs,
    "STS": _pairs,
    "Clustering": _clustering,
    "Summarization": _summaries,
    "BitextMining": _sources,
}
