"""Reading a user's own retrieval or reranking data as mteb's loader would return them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mteblite_resources.own_files import (
    column,
    find_table,
    number,
    read_table,
    require_table,
    strings,
)


def retrieval(self: Any) -> dict[str, Any]:
    """Return per split what mteb's `RetrievalDatasetLoader` returns."""
    name, folder = self.metadata.name, self.own_folder
    corpus = _documents(name, require_table(name, folder, "corpus"), "title")
    queries = _documents(name, require_table(name, folder, "queries"), "instruction")
    return {
        split: _retrieval_split(name, qrels_file(name, folder, split), corpus, queries, self)
        for split in self.eval_splits
    }


def qrels_file(task: str, folder: Path, split: str) -> Path:
    """Return the judgements' file: BEIR's `qrels/<split>`, else `qrels`."""
    return require_table(task, folder, f"qrels/{split}", "qrels")


def _retrieval_split(
    task: str, qrels: Path, corpus: Any, queries: Any, self: Any
) -> dict[str, Any]:
    judged = _judgements(task, qrels, set(queries["id"]), set(corpus["id"]))
    kept = [row for row, query in enumerate(queries["id"]) if query in judged]
    ranked = None
    if self.metadata.type == "Reranking":
        ranked = _candidates(task, self.own_folder, judged, set(corpus["id"]))
    return {
        "corpus": corpus,
        "queries": queries.select(kept),
        "relevant_docs": judged,
        "top_ranked": ranked,
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
        judged.setdefault(query, {})[document] = int(number(task, file, row, score))
    if not documents.intersection(set().union(*judged.values())):
        first = next(iter(next(iter(judged.values()))))
        raise ValueError(
            f"{task}: {file}, row 0: id {first!r} is not in the corpus, nor is any other judged "
            "document: check that the ids of corpus and qrels agree"
        )
    return judged


def _candidates(
    task: str, folder: Path, judged: dict[str, dict[str, int]], documents: set[str]
) -> dict[str, list[str]]:
    file = find_table(folder, "top_ranked")
    if file is None:
        return {query: [d for d in judged[query] if d in documents] for query in judged}
    frame = read_table(task, file)
    queries = strings(column(task, file, frame, "query-id", "query_id"))
    lists = column(task, file, frame, "corpus-ids", "corpus_ids")
    ranked = {query: strings(list(ids)) for query, ids in zip(queries, lists, strict=True)}
    without = sorted(set(judged) - set(ranked))
    if without:
        raise ValueError(f"{task}: {file} has no candidates for query {without[0]!r}")
    unknown = sorted(set().union(*ranked.values()) - documents)
    if unknown:
        raise ValueError(f"{task}: {file}: id {unknown[0]!r} is not in the corpus")
    return ranked
