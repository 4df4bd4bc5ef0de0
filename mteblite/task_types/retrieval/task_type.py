"""Retrieval: queries that are searched in a corpus, scored query by query."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mteblite.pools.items import Cell
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.retrieval import data, metric_names
from mteblite.task_types.retrieval.outcomes import score_pool
from mteblite.task_types.retrieval.own_data import own_search
from mteblite.task_types.retrieval.pool import draw_pool, n_shared
from mteblite.task_types.task_type import Statistics, TaskType, TextKind
from mteblite.task_types.texts import items_by_cell, text_kind


def text_kinds(cells: Mapping[Cell, Statistics], settings: PoolSettings) -> list[TextKind]:
    """Return the queries and the candidates of every cell."""
    quota = items_by_cell(cells, settings, _n_queries)
    found: list[TextKind] = []
    for cell, statistics in cells.items():
        documents, length = text_kind(statistics["documents_text_statistics"])
        _, query_length = text_kind(statistics["queries_text_statistics"])
        wanted = _candidates(statistics, quota[cell], settings, len(cells))
        number = documents if wanted is None else min(documents, wanted)
        found += [(quota[cell], query_length), (number, length)]
    return found


def _n_queries(statistics: Statistics) -> float:
    number = statistics.get("num_queries")
    return float(number or text_kind(statistics["queries_text_statistics"])[0])


def _candidates(
    statistics: Statistics, n_items: int, settings: PoolSettings, n_cells: int
) -> float | None:
    """Return how many documents a cell's queries have as candidates; None: the whole corpus."""
    lists = statistics.get("top_ranked_statistics")
    if lists:
        return n_items * float(lists["average_top_ranked_per_query"])
    if settings.bm25_top is None or settings.random_documents is None:
        return None
    relevant = float(statistics["relevant_docs_statistics"]["average_relevant_docs_per_query"])
    relevant = min(relevant, settings.max_relevant or math.inf)
    shared = n_shared(settings.random_documents, n_cells)
    return n_items * (settings.bm25_top + relevant) + shared


RETRIEVAL = TaskType(
    name="Retrieval",
    outcome="the task's main metric on the query (nDCG@10 unless section 1 names another)",
    metrics=metric_names.METRICS,
    texts_per_item=32.0,
    draw_pool=draw_pool,
    score_pool=score_pool,
    identify=data.identify,
    texts=data.texts,
    read_cell=data.read_cell,
    protocol=data.protocol_of,
    cut=data.cut,
    text_kinds=text_kinds,
    own_data=own_search("ndcg_at_10", with_candidates=False),
    mean_is_score=metric_names.mean_is_score,
    has_metric=metric_names.has_metric,
    check_together=metric_names.check_together,
)
