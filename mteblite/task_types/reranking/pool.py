"""Pool of a Reranking task: queries with the candidate lists that the task itself gives.

Reads the same keys as `retrieval/pool.py`, with `top_ranked` required, and returns the same
frames with no shared documents.
"""

from __future__ import annotations

from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.retrieval import pool as retrieval


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the pool of a reranking task.

    Raises:
        ValueError: a cell has no candidate lists, or as in `retrieval.draw_pool`.
    """
    for cell, frames in data.cells.items():
        if frames.get("top_ranked") is None:
            raise ValueError(
                f"{data.description.task} {cell}: a reranking task without candidate lists; "
                "expected `top_ranked` with the documents of each query"
            )
    return retrieval.draw_pool(data, settings)
