"""What tests of messy data share: a search cell from lists, and a draw with its score held up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from mteblite.outcomes.pool_score import PoolScore
from mteblite.pools.corpus import Corpus
from mteblite.pools.pool import Pool
from mteblite.pools.restriction import restrict
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.scoring import score_pool
from support.pool_tasks import CAPS, vectors_of


def scored(
    data: TaskData,
    settings: PoolSettings = CAPS,
    vectors: Callable[[Pool], np.ndarray] = vectors_of,
) -> tuple[Pool, PoolScore]:
    """Draw and score; every outcome must be in range, and a restriction must agree."""
    pool = draw_pool(data, settings)
    score = score_pool(pool, vectors(pool))
    assert ((score.outcomes >= 0) & (score.outcomes <= 1)).all()
    assert pool.items["item_id"].is_unique
    part = restrict(pool, pool.items["item_id"].tolist()[:2])
    if score.observations is None:
        np.testing.assert_array_equal(score_pool(part, vectors(part)).outcomes, score.outcomes[:2])
    return pool, score


def search_cell(
    texts: Iterable[str],
    qrels: list[tuple[Any, Any, int]],
    queries: dict[Any, str],
    ids: list[Any] | None = None,
    lists: dict[Any, list[Any]] | None = None,
) -> dict[str, Any]:
    """A cell of a search task; documents are d0, d1 ... unless `ids` says otherwise."""
    documents = list(texts)
    named = [f"d{n}" for n in range(len(documents))] if ids is None else ids
    ranked = None
    if lists is not None:
        ranked = pd.DataFrame(
            [(q, d) for q, found in lists.items() for d in found], columns=["query_id", "doc_id"]
        )
    return {
        "corpus": Corpus.from_columns(named, documents),
        "queries": pd.DataFrame({"query_id": list(queries), "text": list(queries.values())}),
        "qrels": pd.DataFrame(qrels, columns=["query_id", "doc_id", "relevance"]),
        "top_ranked": ranked,
    }
