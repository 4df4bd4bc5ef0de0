"""Reading a user's own retrieval or reranking data as mteb's loader would return them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mteblite.task_types.own_files import (
    column,
    find_table,
    number,
    read_table,
    require_table,
    strings,
)
from mteblite.task_types.retrieval.data import MISSING_CANDIDATES
from mteblite.task_types.task_type import OwnData


def own_search(main_metric: str, *, with_candidates: bool) -> OwnData:
    """Return how a user's own corpus, queries and judgements become data of a task.

    Args:
        main_metric: see `OwnData`.
        with_candidates: whether each query has documents of its own to rank: those that
            `top_ranked` lists, else those judged.
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
    corpus = _documents(name, require_table(name, folder, "corpus"), "title")
    queries = _documents(name, require_table(name, folder, "queries"), "instruction")
    found = {}
    for split in self.eval_splits:
        part = _split(name, _qrels_file(name, folder, split), corpus, queries)
        if with_candidates:
            part["top_ranked"], part[MISSING_CANDIDATES] = _candidates(
                name, folder, part["relevant_docs"], set(corpus["id"])
            )
        found[split] = part
    return found


def _qrels_file(task: str, folder: Path, split: str) -> Path:
    """Return the judgements' file: BEIR's `qrels/<split>`, else `qrels`."""
    return require_table(task, folder, f"qrels/{split}", "qrels")


def _split(task: str, qrels: Path, corpus: Any, queries: Any) -> dict[str, Any]:
    judged = _judgements(task, qrels, set(queries["id"]), set(corpus["id"]))
    kept = [row for row, query in enumerate(queries["id"]) if query in judged]
    return {
        "corpus": corpus,
        "queries": queries.select(kept),
        "relevant_docs": judged,
        "top_ranked": None,
    }


def _documents(task: str, file: Path, optional: str) -> Any:
    """Return the rows of `corpus` (optional: title) or `queries` (optional: instruction).

    Rows that say the same under one id count once; a title may stand without a text.
    """
    from datasets import Dataset

    frame = read_table(task, file)
    frame = frame.assign(id=strings(column(task, file, frame, "_id", "id")))
    extra = [optional] if optional in frame.columns else []
    frame = frame.assign(**{name: frame[name].fillna("").astype(str) for name in extra})
    if extra == ["title"] and "text" in frame.columns:
        frame = frame.assign(
            text=frame["text"].mask(frame["text"].isna() & (frame.title != ""), "")
        )
    frame = frame.assign(text=strings(column(task, file, frame, "text")))
    rows = frame[["id", "text", *extra]].drop_duplicates()
    repeated = rows.loc[rows["id"].duplicated(), "id"]
    if len(repeated):
        where = frame.index[frame["id"] == repeated.iloc[0]].tolist()
        raise ValueError(
            f"{task}: {file} has id {repeated.iloc[0]!r} more than once, with different texts in "
            f"rows {where}; make ids unique"
        )
    return Dataset.from_dict({name: rows[name].tolist() for name in rows.columns})


def _judgements(
    task: str, file: Path, queries: set[str], documents: set[str]
) -> dict[str, dict[str, int]]:
    """Return relevance by document by query.

    A judged document may be missing from the corpus: it then counts as one that no model finds,
    as in mteb. If all are missing the ids do not fit, which is an error.
    """
    frame = read_table(task, file)
    rows = zip(
        strings(column(task, file, frame, "query-id", "query_id")),
        strings(column(task, file, frame, "corpus-id", "corpus_id")),
        column(task, file, frame, "score"),
        strict=True,
    )
    judged: dict[str, dict[str, int]] = {}
    for row, (query, document, score) in enumerate(rows):
        if query not in queries:
            raise ValueError(f"{task}: {file}, row {row}: id {query!r} is not in the queries")
        relevance = number(task, file, row, score)
        if not relevance.is_integer():  # mteb would cut it off
            raise ValueError(f"{task}: {file}, row {row}: score {score!r} is no whole number")
        judged.setdefault(query, {})[document] = int(relevance)
    if not documents.intersection(set().union(*judged.values())):
        first = next(iter(next(iter(judged.values()))))
        raise ValueError(
            f"{task}: {file}, row 0: id {first!r} is not in the corpus, nor is any other judged "
            "document: check that the ids of corpus and qrels agree"
        )
    return judged


def _candidates(
    task: str, folder: Path, judged: dict[str, dict[str, int]], documents: set[str]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the candidates of each query, and those listed that are missing from the corpus.

    Missing ones are kept apart because mteb looks every candidate up in the corpus; the pool
    counts them. If all are missing the ids do not fit, which is an error.
    """
    file = find_table(folder, "top_ranked")
    if file is None:
        return {query: [d for d in judged[query] if d in documents] for query in judged}, {}
    listed = _lists(task, file)
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


def _lists(task: str, file: Path) -> dict[str, list[str]]:
    frame = read_table(task, file)
    queries = strings(column(task, file, frame, "query-id", "query_id"))
    lists = column(task, file, frame, "corpus-ids", "corpus_ids")
    listed: dict[str, list[str]] = {}
    for row, (query, ids) in enumerate(zip(queries, lists, strict=True)):
        if not isinstance(ids, list | np.ndarray):
            raise ValueError(
                f"{task}: {file}, row {row}: the candidates are {ids!r}; expected a list of ids, "
                "as JSON Lines and Parquet have them"
            )
        if query in listed:
            raise ValueError(
                f"{task}: {file}, row {row}: query {query!r} has a list already; expected one row "
                "per query"
            )
        listed[query] = strings(list(ids))
    return listed
