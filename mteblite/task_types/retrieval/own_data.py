"""Reading a user's own retrieval or reranking data in the form that mteb's loader returns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mteblite.task_types.own_files import Columns, find_table, require_table
from mteblite.task_types.own_table import OwnTable
from mteblite.task_types.retrieval.data import MISSING_CANDIDATES
from mteblite.task_types.retrieval.own_candidates import candidates
from mteblite.task_types.task_type import OwnData, OwnRead

Judged = dict[str, dict[str, int]]
"""Relevance by document by query."""


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

    def read(task: str, folder: Path, splits: Sequence[str]) -> OwnRead:
        return _read(task, folder, splits, with_candidates=with_candidates)

    return OwnData(main_metric, "AbsTaskRetrieval", files, read, _fill)


def _read(task: str, folder: Path, splits: Sequence[str], *, with_candidates: bool) -> OwnRead:
    """Return `corpus` and `queries`, and by split the judgements and candidates."""
    notes: list[str] = []

    def table(file: Path, *columns: str) -> OwnTable:
        found = OwnTable.read(task, file, columns)
        return OwnTable(task, file, found.parsed, notes)

    text = ("_id", "id", "text")
    corpus = _documents(table(require_table(task, folder, "corpus"), *text, "title"), "title")
    queries = _documents(
        table(require_table(task, folder, "queries"), *text, "instruction"), "instruction"
    )
    documents, asked = set(corpus["id"]), set(queries["id"])
    file = find_table(folder, "top_ranked") if with_candidates else None
    ranking = (
        None if file is None else table(file, "query-id", "query_id", "corpus-ids", "corpus_ids")
    )
    parts: dict[str, Any] = {}
    for split in splits:
        names = ("query-id", "query_id", "corpus-id", "corpus_id", "score")
        judged = _judgements(table(_qrels_file(task, folder, split), *names), asked, documents)
        found: tuple[Any, Any] = None, {}
        if ranking is not None:
            found = candidates(ranking, set(judged), documents)
        elif with_candidates:
            found = {q: [d for d in judged[q] if d in documents] for q in judged}, {}
        parts[split] = {"judged": judged, "ranked": found[0], "missing": found[1]}
    return OwnRead({"corpus": corpus, "queries": queries, "splits": parts}, notes)


def _fill(data: dict[str, Any]) -> dict[str, Any]:
    """Return per split what mteb's `RetrievalDatasetLoader` returns."""
    from datasets import Dataset

    corpus, queries = Dataset.from_dict(data["corpus"]), Dataset.from_dict(data["queries"])
    splits = {}
    for split, part in data["splits"].items():
        judged = part["judged"]
        kept = [row for row, query in enumerate(data["queries"]["id"]) if query in judged]
        splits[split] = {
            "corpus": corpus,
            "queries": queries.select(kept),
            "relevant_docs": judged,
            "top_ranked": part["ranked"],
        }
        if part["ranked"] is not None:
            splits[split][MISSING_CANDIDATES] = part["missing"]
    return {"default": splits}


def _qrels_file(task: str, folder: Path, split: str) -> Path:
    """Return the judgements' file: BEIR's `qrels/<split>`, else `qrels`."""
    return require_table(task, folder, f"qrels/{split}", "qrels")


def _documents(table: OwnTable, optional: str) -> Columns:
    """Return the rows of `corpus` (optional: title) or `queries` (optional: instruction).

    Equal rows of one id count once; the text of a document with a title may be missing.
    """
    columns: Columns = {"id": table.ids("_id", "id")}
    extra = {optional: table.texts(optional, missing=True)} if table.has(optional) else {}
    titled = [title != "" for title in extra[optional]] if "title" in extra else False
    columns |= {"text": table.texts("text", missing=titled), **extra}
    if len(set(columns["id"])) == len(columns["id"]):
        return columns
    rows = pd.DataFrame(columns, dtype=object)
    distinct = rows.drop_duplicates()
    repeated = distinct.index[distinct["id"].duplicated()]
    if len(repeated):
        name = rows["id"][repeated[0]]
        first = columns["id"].index(name)
        raise table.error(
            f"id {name!r} is there more than once, with different texts; make ids unique",
            first,
            int(repeated[0]),
        )
    return {name: distinct[name].tolist() for name in columns}


def _judgements(table: OwnTable, queries: set[str], documents: set[str]) -> Judged:
    """Return the judgements of the queries that there are.

    A judged document that the corpus lacks is found by no model, as in mteb. If the corpus lacks
    all of them, the ids do not agree, which is an error; so it is with queries.
    """
    rows = pd.DataFrame(
        {
            "query": table.ids("query-id", "query_id"),
            "document": table.ids("corpus-id", "corpus_id"),
        },
        dtype=object,
    )
    scores = table.numbers("score")
    fractions = np.flatnonzero(np.array(scores) % 1)
    if len(fractions):  # mteb cuts the fraction off
        row = int(fractions[0])
        raise table.error(
            f"score {scores[row]:g} is no whole number; relevance is graded in whole numbers", row
        )
    rows["score"] = [int(score) for score in scores]
    _require_one_score(table, rows)
    kept = rows[_known(table, rows["query"], "the queries", queries)]
    _known(table, kept["document"], "the corpus", documents)
    if not (kept["score"] > 0).any():
        raise table.error(
            f"no score is above 0 (the highest is {kept['score'].max()}), so that no document is "
            "relevant; nothing can be scored"
        )
    _note_queries(table, kept, queries)
    judged: Judged = {}
    for query, document, score in zip(*(kept[name].tolist() for name in kept), strict=True):
        judged.setdefault(query, {})[document] = score
    return judged


def _require_one_score(table: OwnTable, rows: pd.DataFrame) -> None:
    """Refuse a document that a query has with two scores; equal ones count once."""
    distinct = rows.drop_duplicates()
    pair = ["query", "document"]
    again = distinct.index[distinct.duplicated(pair)]
    if len(again):
        here = rows.loc[again[0]]
        same = (rows["query"] == here["query"]) & (rows["document"] == here["document"])
        first = int(same.to_numpy().argmax())
        raise table.error(
            f"query {here['query']!r} and document {here['document']!r} have the scores "
            f"{rows['score'][first]} and {here['score']}; expected one score for a pair",
            first,
            int(again[0]),
        )


def _known(table: OwnTable, ids: pd.Series, place: str, known: set[str]) -> np.ndarray:
    """Return which ids are known; note how many are not.

    Raises:
        ValueError: none is.
    """
    found: np.ndarray = ids.isin(known).to_numpy()
    if not found.all():
        row, lost = int(ids.index[~found][0]), int((~found).sum())
        if lost == len(ids):
            raise table.error(
                f"id {ids[row]!r} is not in {place}, nor is any other: check that the ids agree",
                row,
            )
        effect = {
            "the queries": "left out, as in mteb",
            "the corpus": "no model can find them, as in mteb",
        }
        table.note(
            f"id {ids[row]!r} is not in {place} (rows with such ids: {lost}): {effect[place]}", row
        )
    return found


def _note_queries(table: OwnTable, rows: pd.DataFrame, queries: set[str]) -> None:
    """Note how many queries have no judgement, and how many have no relevant document."""
    judged, relevant = rows["query"].nunique(), rows.loc[rows["score"] > 0, "query"].nunique()
    if judged < len(queries):
        table.note(f"queries without a judgement: {len(queries) - judged}, left out as in mteb")
    if relevant < judged:
        table.note(
            f"queries without a score above 0: {judged - relevant}; every model scores 0 on them, "
            "as in mteb, and with `max_items` they are left out"
        )
