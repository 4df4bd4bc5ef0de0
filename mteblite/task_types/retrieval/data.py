"""Data of a search task in mteb's shapes: reading a cell, finding items again, cutting to some.

Texts are what mteb's dataloaders hand to an encoder: title and body joined, a query with its
instruction, a conversation as one string. mteb's own functions make them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from mteblite.pools.corpus import Corpus
from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.restriction import of_cell
from mteblite.pools.task_data import TaskData
from mteblite.task_types.columns import TaskCell, cell_rows, require_rows, texts_of
from mteblite.task_types.retrieval.metric_names import SUBQUERIES
from mteblite.task_types.task_type import Frames

MISSING_CANDIDATES = "missing_candidates"
"""Key of a cell that holds, by query, candidates which its corpus lacks and mteb would not find."""


def read_cell(task: Any, cell: TaskCell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return `corpus`, `queries` [query_id, text], `qrels` and `top_ranked` (or None).

    Queries without any judged document are dropped as in mteb; a judgement of relevance 0 counts.
    Candidates may be missing from the corpus; the pool drops and counts them.
    """
    from mteb._create_dataloaders import _retrieval_texts
    from mteb.abstasks.retrieval import _filter_queries_without_positives
    from mteb.types import PromptType

    task.convert_v1_dataset_format_to_v2(num_proc=None)
    data = cell_rows(task, cell)
    judged, queries = _filter_queries_without_positives(data["relevant_docs"], data["queries"])
    require_rows(cell, "query with a judged document", len(queries))
    require_rows(cell, "document", len(data["corpus"]))
    query_ids = [str(i) for i in queries["id"][:]]
    judged = {str(query): documents for query, documents in judged.items()}
    ranked = data["top_ranked"]
    missing = data.get(MISSING_CANDIDATES, {})
    if not isinstance(queries["text"][0], dict | list):  # a conversation is made a text below
        texts_of(cell, "text", queries["text"][:])
    return {
        "corpus": Corpus.from_dataset(data["corpus"], "id", _document_texts),
        "queries": pd.DataFrame(
            {
                "query_id": query_ids,
                "text": texts_of(cell, "text", _retrieval_texts(queries, PromptType.query)),
            }
        ),
        "qrels": pd.DataFrame(
            [(q, d, int(judged[q][d])) for q in query_ids for d in sorted(judged[q])],
            columns=["query_id", "doc_id", "relevance"],
        ),
        "top_ranked": None
        if ranked is None
        else pd.DataFrame(
            [(q, str(d)) for q in query_ids for d in (*ranked.get(q, ()), *missing.get(q, ()))],
            columns=["query_id", "doc_id"],
        ),
    }


def protocol_of(task: Any) -> dict[str, Any]:
    """Return the settings of `AbsTaskRetrieval` that scores depend on."""
    return {
        "ignore_identical_ids": bool(task.ignore_identical_ids),
        "skip_first_result": bool(task.skip_first_result),
        "k_values": [int(k) for k in task.k_values],
        "top_k": int(task._top_k),
    }


def identify(frames: Frames, metric: str) -> tuple[list[int], list[str]]:
    """Return the rows of `queries` and the id of the item of each."""
    names = [str(query) for query in frames["queries"]["query_id"]]
    if metric.startswith(SUBQUERIES):
        names = [name.rpartition("_")[0] for name in names]
    return list(range(len(names))), names


def texts(frames: Frames, pool: Pool, cell: Cell) -> Iterator[str]:
    """Yield the texts of the pool's queries and documents; a corpus may hold millions more."""
    queries = frames["queries"]
    asked = set(of_cell(pool.frames["queries"], cell)["query_id"])
    chosen = queries["query_id"].astype(str).isin(asked)
    yield from queries.loc[chosen, "text"].tolist()
    yield from _documents(frames["corpus"], set(of_cell(pool.frames["documents"], cell)["doc_id"]))


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


def _document_texts(rows: dict[str, list[Any]]) -> list[Any]:
    """Return title and text joined as in mteb; what is no text stays, for the corpus to name."""
    from mteb._create_dataloaders import _corpus_to_dict

    titles = rows.get("title") or [""] * len(rows["text"])
    return [
        _corpus_to_dict({"id": "", "title": title or "", "text": text})["text"]
        if isinstance(text, str)
        else text
        for title, text in zip(titles, rows["text"], strict=True)
    ]


def _documents(corpus: Corpus, wanted: set[str]) -> list[str]:
    rows: dict[str, int] = {}
    for row, document in enumerate(corpus.ids):
        if document in wanted:
            rows.setdefault(document, row)
    return corpus.texts(list(rows.values()))


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
