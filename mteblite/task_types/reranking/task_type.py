"""Reranking: as retrieval, but every query has candidates of its own."""

from __future__ import annotations

from dataclasses import replace

from mteblite.task_types.reranking.pool import draw_pool
from mteblite.task_types.retrieval.own_data import own_search
from mteblite.task_types.retrieval.task_type import RETRIEVAL

RERANKING = replace(
    RETRIEVAL,
    name="Reranking",
    outcome="the task's main metric on the query (average precision, or nDCG@10)",
    texts_per_item=25.0,
    draw_pool=draw_pool,
    own_data=own_search("map_at_1000", with_candidates=True),
)
