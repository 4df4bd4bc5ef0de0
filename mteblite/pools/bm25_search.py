"""The best documents of a query by MaxScore (Turtle and Flood 1995): exact, without reading all.

Rare terms go first. Once no document without one of them can reach the best ones any more,
common terms are only looked up for the documents found, so the long lists of common words are
not read. Sums are taken in float32 in the order of the terms, so that documents of one content
tie in every implementation, and any two machines agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SLACK = 1 - 1e-5
"""A bound this close to a score may be a tie: float32 sums of a query are exact to some 1e-6."""


BLOCK = 64
"""Rows of a block: with a frequent term in every other row, five steps find a document."""


class Postings(NamedTuple):
    """Which documents have a term, and what it adds to their score.

    Attributes:
        starts: (n_terms + 1,) int64; postings of term t are starts[t] to starts[t + 1].
        documents: int32 rows, ascending within a term.
        scores: float32.
        limits: (n_terms,) float32, the largest score of each term.
        blocks: (n_frequent, n_blocks + 1) int32: where in the postings of a frequent term each
            block of BLOCK rows begins, counted from the term's start.
        frequent: (n_terms,) int32 row of a term in `blocks`, -1 for terms that have none.
        n_documents: number of rows.
    """

    starts: np.ndarray
    documents: np.ndarray
    scores: np.ndarray
    limits: np.ndarray
    blocks: np.ndarray
    frequent: np.ndarray
    n_documents: int

    def of(self, term: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and scores of a term."""
        part = slice(self.starts[term], self.starts[term + 1])
        return self.documents[part], self.scores[part]


def make_postings(
    starts: np.ndarray, documents: np.ndarray, scores: np.ndarray, n_documents: int
) -> Postings:
    """Return postings with their limits and blocks."""
    frequencies = np.diff(starts)
    limits = np.zeros(len(frequencies), dtype=np.float32)
    used = np.flatnonzero(frequencies)
    if len(used):
        limits[used] = np.maximum.reduceat(scores, starts[:-1][used])
    named = np.flatnonzero(frequencies > n_documents / BLOCK)
    frequent = np.full(len(frequencies), -1, dtype=np.int32)
    frequent[named] = np.arange(len(named))
    bounds = np.arange(0, n_documents + BLOCK, BLOCK)
    blocks = np.empty((len(named), len(bounds)), dtype=np.int32)
    for row, term in enumerate(named):
        blocks[row] = np.searchsorted(documents[starts[term] : starts[term + 1]], bounds)
    return Postings(starts, documents, scores, limits, blocks, frequent, n_documents)


class Query(NamedTuple):
    """Terms of a query, rarest first, and how often each occurs in it."""

    terms: list[int]
    repeats: list[int]


Found = tuple[np.ndarray, np.ndarray]
"""Rows and float32 scores of the best documents and of all that tie with the last, unordered."""


def search(postings: Postings, query: Query, number: int) -> Found:
    """Return the `number` best documents of a query and all that tie with the last of them."""
    repeats = np.array(query.repeats, dtype=np.float32)
    limits = repeats * postings.limits[query.terms]
    total = np.zeros(postings.n_documents, dtype=np.float32)
    rows = np.empty(0, dtype=np.int64)
    for rank, term in enumerate(query.terms):
        listed, scores = postings.of(term)
        values = repeats[rank] * scores
        # what a document that none of the terms so far found can reach at most
        rest = limits[rank:].sum()
        if (
            len(rows) > number
            and limits[:rank].sum() > rest
            and _nth(total[rows], number) * SLACK > rest
        ):
            places = np.minimum(np.searchsorted(listed, rows), len(listed) - 1)
            total[rows] += np.where(listed[places] == rows, values[places], 0)
        else:
            total[listed] += values
            few = len(rows) + len(listed) < postings.n_documents // 16
            rows = np.union1d(rows, listed) if few else np.flatnonzero(total)
    final = total[rows]
    if len(rows) > number:
        kept = final >= _nth(final, number)
        rows, final = rows[kept], final[kept]
    return rows, final


def _nth(scores: np.ndarray, number: int) -> float:
    """Return the `number`-th largest score."""
    return float(np.partition(scores, len(scores) - number)[len(scores) - number])
