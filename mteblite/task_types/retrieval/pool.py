"""Pool of a Retrieval or Reranking task: queries, each with its candidates.

Reads from `TaskData.cells[(split, hf_subset)]`:
    corpus: `Corpus`; queries: DataFrame[query_id, text]; qrels: DataFrame[query_id, doc_id,
    relevance]; top_ranked: DataFrame[query_id, doc_id] or None.
Protocol: `ignore_identical_ids`, `k_values`, `skip_first_result`.

The candidates of a query are its own list where the task has one (`top_ranked`). Else they are
the best documents by BM25 over the full corpus, its relevant documents, and random documents
shared by the cell. Without a cap on BM25 or on random documents, every document is a candidate of
every query.

An item is a query with a judgement. Where the main score is a maximum over sub-queries (MindSmall),
it is all sub-queries `<item>_<n>` of an impression. Under a cap only queries with a relevant
document are items; the others score 0 for every model.

Frames of the pool:
    queries [item_id, split, hf_subset, query_id, query_row];
    documents [split, hf_subset, doc_id, document_row, shared];
    candidates [item_id, query_id, doc_id], without the shared documents of the cell;
    qrels [item_id, query_id, doc_id, relevance], without relevant documents dropped by a cap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mteblite.pools.assembly import Texts, assemble, item_frame
from mteblite.pools.bm25 import best_documents
from mteblite.pools.corpus import Corpus
from mteblite.pools.items import Cell, check_numbers, check_texts, draw, item_ids, split_evenly
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.seeds import stable_seed
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.retrieval.metric_names import SUBQUERIES

LEAST_RANDOM_DOCUMENTS = 200
"""Per subset of a task with several (docs/methods.md, Candidates of retrieval)."""

PART = 1_000_000
"""Ids hashed at a time."""


@dataclass
class _Queries:
    """The judged queries of a cell: text and judgements by query id, query ids by item."""

    corpus: Corpus
    texts: dict[str, str]
    qrels: dict[str, dict[str, int]]
    items: dict[str, list[str]]
    top_ranked: dict[str, list[str]] | None
    own: dict[str, list[str]] = field(default_factory=dict)
    shared: list[str] = field(default_factory=list)
    dropped: int = 0
    missing_relevant: int = 0
    missing_candidates: int = 0


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the pool of a retrieval or reranking task.

    Raises:
        ValueError: a text or a relevance is missing, or no query has a judgement; names row and
            column.
    """
    name, metric = data.description.task, data.description.main_metric
    capped = settings.max_items is not None
    metrics = [metric, *data.description.metrics]
    cells = {c: _read(f, metric, capped, f"{name} {c}") for c, f in data.cells.items()}
    quota = split_evenly({c: len(cell.items) for c, cell in cells.items()}, settings.max_items)
    n_available = sum(len(cell.items) for cell in cells.values())
    texts = Texts()
    parts: dict[str, list[pd.DataFrame]] = {
        k: [] for k in ("queries", "documents", "candidates", "qrels")
    }
    items = []
    for key, cell in cells.items():
        keys = list(cell.items)
        rows = draw(keys, quota[key], settings.seed, name, *key, "pool")
        cell.items = {keys[r]: cell.items[keys[r]] for r in rows}
        _choose_candidates(cell, settings, metrics, len(cells), (settings.seed, name, *key))
        ids = dict(zip(cell.items, item_ids(key, cell.items), strict=True))
        items.append(item_frame(key, list(ids.values())))
        for part, frame in _frames(key, cell, ids, texts).items():
            parts[part].append(frame)
    meta = {
        "n_available": n_available,
        "n_dropped_relevant": sum(cell.dropped for cell in cells.values()),
        "n_missing_relevant": sum(cell.missing_relevant for cell in cells.values()),
        "n_missing_candidates": sum(cell.missing_candidates for cell in cells.values()),
    }
    return assemble(data, settings, texts, items, parts, meta)


def _read(frames: Mapping[str, Any], metric: str, capped: bool, where: str) -> _Queries:
    queries = frames["queries"]
    check_texts(queries, ["text"], f"{where} queries")
    texts = dict(zip(map(str, queries["query_id"]), queries["text"], strict=True))
    qrels: dict[str, dict[str, int]] = {}
    table = frames["qrels"]
    relevances = check_numbers(table["relevance"].tolist(), "relevance", f"{where} qrels")
    for query, document, relevance in zip(
        map(str, table["query_id"]), map(str, table["doc_id"]), relevances.tolist(), strict=True
    ):
        if query in texts:
            qrels.setdefault(query, {})[document] = int(relevance)
    groups: dict[str, list[str]] = {}
    for query in sorted(qrels):
        item = query.rpartition("_")[0] if metric.startswith(SUBQUERIES) else query
        groups.setdefault(item, []).append(query)
    if capped:
        relevant = {q for q, judged in qrels.items() if any(r > 0 for r in judged.values())}
        groups = {item: qs for item, qs in groups.items() if relevant.intersection(qs)}
    if not groups:
        raise ValueError(
            f"{where}: none of {len(texts)} queries has a "
            f"{'relevant document' if capped else 'judgement'}: check that the query ids of "
            "queries and qrels agree"
        )
    ranked: dict[str, list[str]] | None = None
    if frames.get("top_ranked") is not None:
        table = frames["top_ranked"]
        ranked = {}
        for query, document in zip(
            map(str, table["query_id"]), map(str, table["doc_id"]), strict=True
        ):
            ranked.setdefault(query, []).append(document)
    return _Queries(frames["corpus"], texts, qrels, groups, ranked)


def _choose_candidates(
    cell: _Queries,
    settings: PoolSettings,
    metrics: Sequence[str],
    n_cells: int,
    keys: tuple[str | int, ...],
) -> None:
    """Fill `own` and `shared`; drop relevant documents beyond the cap; count missing documents."""
    queries = [query for group in cell.items.values() for query in group]
    known = set(cell.corpus.ids)
    cell.missing_relevant = sum(
        relevance > 0 and document not in known
        for query in queries
        for document, relevance in cell.qrels[query].items()
    )
    if cell.top_ranked is not None:
        listed = {query: cell.top_ranked.get(query, []) for query in queries}
        cell.own = {query: [d for d in found if d in known] for query, found in listed.items()}
        cell.missing_candidates = sum(len(listed[q]) - len(cell.own[q]) for q in queries)
        return
    ids = cell.corpus.ids
    distinct = ids if len(known) == len(ids) else list(dict.fromkeys(ids))
    if settings.bm25_top is None or settings.random_documents is None:
        cell.shared = distinct
        return
    number = n_shared(settings.random_documents, n_cells)
    cell.shared = _random_documents(distinct, number, *keys, "documents")
    best = _first_stage(cell, queries, settings.bm25_top)
    cap = _relevant_cap(settings.max_relevant, metrics)
    for query in queries:
        own, judged = dict.fromkeys(best[query]), cell.qrels[query]
        kept = _keep_relevant(judged, cap, (*keys, query))
        own.update(dict.fromkeys(document for document in kept if document in known))
        cell.own[query] = list(own)
        reachable = {*own, *kept, *cell.shared}
        lost = {d for d, relevance in judged.items() if relevance > 0 and d not in reachable}
        cell.dropped += len(lost)
        cell.qrels[query] = {d: r for d, r in judged.items() if d not in lost}


def n_shared(random_documents: int, n_cells: int) -> int:
    """Return how many of a task's random documents each of its cells has."""
    if n_cells == 1:
        return random_documents
    return min(random_documents, max(LEAST_RANDOM_DOCUMENTS, random_documents // n_cells))


def _first_stage(cell: _Queries, queries: Sequence[str], number: int) -> dict[str, list[str]]:
    """Return the ids of each query's best documents by BM25."""
    if number == 0:
        return {query: [] for query in queries}
    found = best_documents(cell.corpus, [cell.texts[query] for query in queries], number)
    return dict(zip(queries, found, strict=True))


def _relevant_cap(cap: int | None, metrics: Sequence[str]) -> int | None:
    """Return how many relevant documents of a query these metrics need; None: all.

    A cut at k needs the k best for its ideal ranking. Average precision, recall and areas under a
    curve count all relevant documents (TRECCOVID has 493 per query).
    """
    for metric in metrics:
        bare = metric.removeprefix(SUBQUERIES).removeprefix("nauc_")
        base, _, depth = bare.partition("_at_")
        depth = depth.partition("_")[0]
        if cap is None or base in ("map", "recall") or metric.startswith("auprc"):
            return None
        cap = max(cap, int(depth) if depth.isdigit() else 0)
    return cap


def _keep_relevant(
    judged: Mapping[str, int], cap: int | None, keys: tuple[str | int, ...]
) -> list[str]:
    """Return the relevant documents to keep: the most relevant first, then by a seeded draw."""
    relevant = sorted(d for d, relevance in judged.items() if relevance > 0)
    if cap is None or len(relevant) <= cap:
        return relevant
    chance = _chances(relevant, *keys, "relevant")
    order = sorted(
        range(len(relevant)), key=lambda i: (-judged[relevant[i]], chance[i], relevant[i])
    )
    return [relevant[i] for i in order[:cap]]


def _random_documents(ids: list[str], number: int, *keys: str | int) -> list[str]:
    """Return the `number` documents with the smallest seeded hashes.

    Unlike a permutation, hashes need no sorted copy of millions of ids, and a corpus that grows
    changes few of the drawn documents.
    """
    if number >= len(ids):
        return sorted(ids)
    chance = _chances(ids, *keys)
    least = np.partition(chance, number)[number]
    rows = np.flatnonzero(chance <= least)
    return sorted(ids[row] for row in rows[np.argsort(chance[rows], kind="stable")[:number]])


def _chances(ids: list[str], *keys: str | int) -> np.ndarray:
    key = f"{stable_seed(*keys):016x}"
    parts = [
        # in parts, because pandas encodes all texts of a call at once
        pd.util.hash_array(
            np.array(ids[i : i + PART], dtype=object), hash_key=key, categorize=False
        )
        for i in range(0, len(ids), PART)
    ]
    return np.concatenate([np.empty(0, np.uint64), *parts])


def first_rows(ids: Iterable[str], wanted: Collection[str]) -> dict[str, int]:
    """Return the row of each wanted id that there is; of an id that repeats, the first row."""
    found: dict[str, int] = {}
    for row, name in enumerate(ids):
        if name in wanted:
            found.setdefault(name, row)
    return found


def _frames(
    key: Cell, cell: _Queries, ids: Mapping[str, str], texts: Texts
) -> dict[str, pd.DataFrame]:
    split, hf_subset = key
    queries = [(ids[item], q) for item, group in cell.items.items() for q in group]
    shared = set(cell.shared)
    own = [(i, q, d) for i, q in queries for d in cell.own.get(q, []) if d not in shared]
    wanted = shared.union(d for _, _, d in own)
    row_of = first_rows(cell.corpus.ids, wanted)
    documents = sorted(row_of)
    judged = [(i, q, d, r) for i, q in queries for d, r in sorted(cell.qrels[q].items())]
    return {
        "queries": pd.DataFrame(
            {
                "item_id": [i for i, _ in queries],
                "split": split,
                "hf_subset": hf_subset,
                "query_id": [q for _, q in queries],
                "query_row": texts.add([cell.texts[q] for _, q in queries], "query"),
            }
        ),
        "documents": pd.DataFrame(
            {
                "split": split,
                "hf_subset": hf_subset,
                "doc_id": documents,
                "document_row": texts.add(
                    cell.corpus.texts([row_of[d] for d in documents]), "document"
                ),
                "shared": [d in shared for d in documents],
            }
        ),
        "candidates": pd.DataFrame(
            [row for row in own if row[2] in row_of], columns=["item_id", "query_id", "doc_id"]
        ).drop_duplicates(ignore_index=True),
        "qrels": pd.DataFrame(judged, columns=["item_id", "query_id", "doc_id", "relevance"]),
    }
