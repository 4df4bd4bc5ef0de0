"""Reading a retrieval or reranking cell: corpus, queries, judgements, candidate lists.

Texts are what mteb's dataloaders hand to an encoder: title and body joined, a query with its
instruction, a conversation as one string. mteb's own functions make them.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from mteblite.pools.corpus import Corpus
from mteblite.task_types.columns import Cell, cell_rows, require_rows, texts_of

MISSING_CANDIDATES = "missing_candidates"
"""Key of a cell that holds, by query, candidates which its corpus lacks and mteb would not find."""


def read_cell(task: Any, cell: Cell, protocol: dict[str, Any]) -> dict[str, Any]:
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
