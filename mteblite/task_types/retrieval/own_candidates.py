"""Reading the candidate lists of a user's own reranking data."""

from __future__ import annotations

from collections.abc import Set

from mteblite.task_types.own_table import OwnTable

Lists = dict[str, list[str]]
"""Ids of documents by query."""


def candidates(table: OwnTable, judged: Set[str], documents: Set[str]) -> tuple[Lists, Lists]:
    """Return the candidates of each query, and the listed ones that the corpus lacks.

    The missing ones are separate because mteb looks every candidate up in the corpus; the pool
    counts them. A document that a list has twice counts once.

    Raises:
        ValueError: a judged query has no list, or the corpus lacks all candidates, so that the
            ids do not agree.
    """
    listed = _lists(table)
    without = sorted(judged - listed.keys())
    if without:
        raise table.error(f"no candidates for query {without[0]!r}; expected a row for each query")
    if not documents & set().union(*listed.values()):
        first = next((d for ids in listed.values() for d in ids), None)
        raise table.error(
            f"id {first!r} is not in the corpus, nor is any other candidate: check that the ids of "
            "corpus and top_ranked agree",
            0,
        )
    found = {query: [d for d in ids if d in documents] for query, ids in listed.items()}
    missing = {query: [d for d in ids if d not in documents] for query, ids in listed.items()}
    return found, {query: ids for query, ids in missing.items() if ids}


def _lists(table: OwnTable) -> Lists:
    queries = table.ids("query-id", "query_id")
    lists = table.lists_of_ids("corpus-ids", "corpus_ids")
    listed: Lists = {}
    repeats = 0
    for row, (query, ids) in enumerate(zip(queries, lists, strict=True)):
        if query in listed:
            raise table.error(
                f"query {query!r} has a list already; expected one row per query", row
            )
        listed[query] = list(dict.fromkeys(ids))
        repeats += len(ids) - len(listed[query])
    if repeats:
        table.note(f"candidates that a list has twice: {repeats}; they count once, as in mteb")
    return listed
