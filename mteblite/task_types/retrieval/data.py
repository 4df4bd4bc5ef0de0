"""Data of a search task: reading a cell of mteb's loaded task, and cutting the task to items.

Texts are those that mteb's dataloaders give to an encoder: title and body joined, a query with its
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
from mteblite.task_types.retrieval.pool import first_rows
from mteblite.task_types.task_type import Frames

MISSING_CANDIDATES = "missing_candidates"
"""Key of a cell: by query, the candidates that its corpus lacks, which mteb cannot look up."""


def read_cell(task: Any, cell: TaskCell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return `corpus`, `queries` [query_id, text], `qrels` and `top_ranked` (or None).

    As in mteb, queries without a judged document are dropped; a judgement of relevance 0 counts.
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
    if not isinstance(
        queries["text"][0], dict | list
    ):  # else `_retrieval_texts` joins a conversation
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
    """Return the rows of `queries` and the identity of the item of each."""
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
    corpus, documents = frames["corpus"], of_cell(pool.frames["documents"], cell)
    yield from corpus.texts(list(first_rows(corpus.ids, set(documents["doc_id"])).values()))


def cut(task: Any, pool: Pool, data: TaskData, rows: Mapping[Cell, list[int]]) -> None:
    """Keep the selected queries, their judgements and their candidates.

    Where queries have lists of their own, mteb reranks these. Else mteb searches the documents
    that the queries of the pool share.
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
            "corpus": _select(cell["corpus"], set(documents["doc_id"])),
            "queries": _select(cell["queries"], set(asked)),
            "relevant_docs": {
                query: dict(zip(part["doc_id"], map(int, part["relevance"]), strict=True))
                for query, part in judged.groupby("query_id")
            },
            "top_ranked": _candidates(asked, listed, documents) if len(listed) else None,
        }


def _document_texts(rows: dict[str, list[Any]]) -> list[Any]:
    """Return title and text joined as in mteb; a value that is no text stays as it is.

    `Corpus` reports such a value with its row.
    """
    from mteb._create_dataloaders import _corpus_to_dict

    titles = rows.get("title") or [""] * len(rows["text"])
    return [
        _corpus_to_dict({"id": "", "title": title or "", "text": text})["text"]
        if isinstance(text, str)
        else text
        for title, text in zip(titles, rows["text"], strict=True)
    ]


def _select(table: Any, wanted: set[str]) -> Any:
    """Return the first row of each of these ids."""
    return table.select(list(first_rows(map(str, table["id"][:]), wanted).values()))


def _candidates(
    queries: Sequence[str], listed: pd.DataFrame, documents: pd.DataFrame
) -> dict[str, list[str]]:
    shared = documents.loc[documents["shared"].to_numpy(dtype=bool), "doc_id"].tolist()
    own = {query: part["doc_id"].tolist() for query, part in listed.groupby("query_id")}
    return {query: [*shared, *own.get(query, [])] for query in queries}
