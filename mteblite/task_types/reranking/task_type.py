"""Reranking: as retrieval, but every query has candidates of its own."""

from __future__ import annotations

from dataclasses import replace

from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.retrieval.own_data import own_search
from mteblite.task_types.retrieval.task_type import RETRIEVAL


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the pool: queries with the candidate lists of the task, and no shared documents.

    Raises:
        ValueError: a cell has no candidate lists, or as in `retrieval.pool.draw_pool`.
    """
    for cell, frames in data.cells.items():
        if frames.get("top_ranked") is None:
            raise ValueError(
                f"{data.description.task} {cell}: a reranking task without candidate lists; "
                "expected `top_ranked` with the documents of each query"
            )
    return RETRIEVAL.draw_pool(data, settings)


RERANKING = replace(
    RETRIEVAL,
    name="Reranking",
    outcome="the task's main metric on the query (average precision, or nDCG@10)",
    texts_per_item=25.0,
    draw_pool=draw_pool,
    own_data=own_search("map_at_1000", with_candidates=True),
)
