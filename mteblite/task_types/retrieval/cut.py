"""Cutting a loaded search task's data to a few queries, in mteb's own shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.restriction import of_cell
from mteblite.pools.task_data import TaskData


def cut(task: Any, pool: Pool, data: TaskData, rows: Mapping[Cell, list[int]]) -> None:
    """Keep the selected queries, their judgements and their candidates.

    Where queries have lists of their own, mteb reranks these; else all documents that the pool
    shares are the corpus, which mteb searches.
    """
    frames = pool.frames
    for split, subset in data.cells:
        cell = task.dataset[subset][split]
        queries = of_cell(frames["queries"], (split, subset))
        documents = of_cell(frames["documents"], (split, subset))
        asked = queries["query_id"].tolist()
        judged = frames["qrels"][frames["qrels"]["query_id"].isin(asked)]
        judged = judged[judged["item_id"].isin(queries["item_id"])]
        listed = frames["candidates"][frames["candidates"]["item_id"].isin(queries["item_id"])]
        task.dataset[subset][split] = {
            "corpus": _first_rows(cell["corpus"], set(documents["doc_id"])),
            "queries": _first_rows(cell["queries"], set(asked)),
            "relevant_docs": {
                query: dict(zip(part["doc_id"], map(int, part["relevance"]), strict=True))
                for query, part in judged.groupby("query_id")
            },
            "top_ranked": _candidates(asked, listed, documents) if len(listed) else None,
        }


def _first_rows(table: Any, wanted: set[str]) -> Any:
    """Rows with these ids; of an id that repeats the first."""
    rows: dict[str, int] = {}
    for row, name in enumerate(table["id"][:]):
        if str(name) in wanted:
            rows.setdefault(str(name), row)
    return table.select(sorted(rows.values()))


def _candidates(
    queries: Sequence[str], listed: pd.DataFrame, documents: pd.DataFrame
) -> dict[str, list[str]]:
    shared = documents.loc[documents["shared"].to_numpy(dtype=bool), "doc_id"].tolist()
    own = {query: part["doc_id"].tolist() for query, part in listed.groupby("query_id")}
    return {query: [*shared, *own.get(query, [])] for query in queries}
