"""Reading a user's own retrieval or reranking data in the form that mteb's loader returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mteblite.task_types.own_files import OwnTable, find_table, require_table
from mteblite.task_types.retrieval.data import MISSING_CANDIDATES
from mteblite.task_types.task_type import OwnData


def own_search(main_metric: str, *, with_candidates: bool) -> OwnData:
    """Return how a user's own corpus, queries and judgements become data of a task.

    Args:
        main_metric: see `OwnData`.
        with_candidates: whether each query has documents of its own to rank: those listed in
            `top_ranked`, or its judged documents where there is no such table.
    """

    def files(task: str, folder: Path, splits: Sequence[str]) -> list[Path]:
        found = [require_table(task, folder, name) for name in ("corpus", "queries")]
        found += [_qrels_file(task, folder, split) for split in splits]
        ranked = find_table(folder, "top_ranked") if with_candidates else None
        return found + ([] if ranked is None else [ranked])

    def fill(self: Any) -> dict[str, Any]:
        return {"default": _splits(self, with_candidates=with_candidates)}

    return OwnData(main_metric, "AbsTaskRetrieval", files, fill)


def _splits(self: Any, *, with_candidates: bool) -> dict[str, Any]:
    """Return per split what mteb's `RetrievalDatasetLoader` returns."""
    name, folder = self.metadata.name, self.own_folder
    corpus = _documents(OwnTable.read(name, require_table(name, folder, "corpus")), "title")
    queries = _documents(OwnTable.read(name, require_table(name, folder, "queries")), "instruction")
    documents = set(corpus["id"])
    found = {}
    for split in self.eval_splits:
        qrels = OwnTable.read(name, _qrels_file(name, folder, split))
        judged = _judgements(qrels, set(queries["id"]), documents)
        kept = [row for row, query in enumerate(queries["id"]) if query in judged]
        found[split] = {
            "corpus": corpus,
            "queries": queries.select(kept),
            "relevant_docs": judged,
            "top_ranked": None,
        }
        if with_candidates:
            ranked, missing = _candidates(name, folder, judged, documents)
            found[split] |= {"top_ranked": ranked, MISSING_CANDIDATES: missing}
    return found


def _qrels_file(task: str, folder: Path, split: str) -> Path:
    """Return the judgements' file: BEIR's `qrels/<split>`, else `qrels`."""
    return require_table(task, folder, f"qrels/{split}", "qrels")


def _documents(table: OwnTable, optional: str) -> Any:
    """Return the rows of `corpus` (optional: title) or `queries` (optional: instruction).

    Equal rows of one id count once; the text of a document with a title may be missing.
    """
    from datasets import Dataset

    frame = table.frame.assign(id=table.strings("_id", "id"))
    extra = [optional] if optional in frame.columns else []
    frame = frame.assign(**{name: frame[name].fillna("").astype(str) for name in extra})
    if extra == ["title"] and "text" in frame.columns:
        frame = frame.assign(
            text=frame["text"].mask(frame["text"].isna() & (frame.title != ""), "")
        )
    frame = frame.assign(text=replace(table, frame=frame).strings("text"))
    rows = frame[["id", "text", *extra]].drop_duplicates()
    repeated = rows.loc[rows["id"].duplicated(), "id"]
    if len(repeated):
        where = frame.index[frame["id"] == repeated.iloc[0]].tolist()
        raise ValueError(
            f"{table.task}: {table.file} has id {repeated.iloc[0]!r} more than once, with "
            f"different texts in rows {where}; make ids unique"
        )
    return Dataset.from_dict({name: rows[name].tolist() for name in rows.columns})


def _judgements(
    table: OwnTable, queries: set[str], documents: set[str]
) -> dict[str, dict[str, int]]:
    """Return relevance by document by query.

    A judged document that the corpus lacks is found by no model, as in mteb. If the corpus lacks
    all of them, the ids do not agree, which is an error.
    """
    rows = zip(
        table.strings("query-id", "query_id"),
        table.strings("corpus-id", "corpus_id"),
        table.column("score"),
        strict=True,
    )
    where = f"{table.task}: {table.file}"
    judged: dict[str, dict[str, int]] = {}
    for row, (query, document, score) in enumerate(rows):
        if query not in queries:
            raise ValueError(f"{where}, row {row}: id {query!r} is not in the queries")
        relevance = table.number(row, score)
        if not relevance.is_integer():  # mteb truncates it
            raise ValueError(f"{where}, row {row}: score {score!r} is no whole number")
        judged.setdefault(query, {})[document] = int(relevance)
    if not documents.intersection(set().union(*judged.values())):
        first = next(iter(next(iter(judged.values()))))
        raise ValueError(
            f"{where}, row 0: id {first!r} is not in the corpus, nor is any other judged "
            "document: check that the ids of corpus and qrels agree"
        )
    return judged


def _candidates(
    task: str, folder: Path, judged: dict[str, dict[str, int]], documents: set[str]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the candidates of each query, and the listed ones that the corpus lacks.

    The missing ones are separate because mteb looks every candidate up in the corpus; the pool
    counts them. If the corpus lacks all of them, the ids do not agree, which is an error.
    """
    file = find_table(folder, "top_ranked")
    if file is None:
        return {query: [d for d in judged[query] if d in documents] for query in judged}, {}
    listed = _lists(OwnTable.read(task, file))
    without = sorted(set(judged) - set(listed))
    if without:
        raise ValueError(f"{task}: {file} has no candidates for query {without[0]!r}")
    if not documents.intersection(set().union(*listed.values())):
        first = next((d for ids in listed.values() for d in ids), None)
        raise ValueError(
            f"{task}: {file}: id {first!r} is not in the corpus, nor is any other candidate: "
            "check that the ids of corpus and top_ranked agree"
        )
    found = {query: [d for d in ids if d in documents] for query, ids in listed.items()}
    missing = {query: [d for d in ids if d not in documents] for query, ids in listed.items()}
    return found, {query: ids for query, ids in missing.items() if ids}


def _lists(table: OwnTable) -> dict[str, list[str]]:
    queries = table.strings("query-id", "query_id")
    lists = table.column("corpus-ids", "corpus_ids")
    listed: dict[str, list[str]] = {}
    for row, (query, ids) in enumerate(zip(queries, lists, strict=True)):
        where = f"{table.task}: {table.file}, row {row}"
        if not isinstance(ids, list | np.ndarray):
            raise ValueError(
                f"{where}: the candidates are {ids!r}; expected a list of ids, as in JSON Lines "
                "and Parquet"
            )
        if query in listed:
            raise ValueError(
                f"{where}: query {query!r} has a list already; expected one row per query"
            )
        listed[query] = [str(document) for document in ids]
    return listed
