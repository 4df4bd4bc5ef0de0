"""`bm25_search.search` for many queries, compiled by numba: the same documents, bit for bit.

Beyond the plain version, documents that cannot reach the best ones any more are dropped as soon
as common terms are only looked up. Compiled code is kept in numba's cache beside this file.
"""
# numba reads no annotations, and mypy none of its functions: types are in the docstrings
# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# ruff: noqa: ANN001, ANN202

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mteblite.compiling import compiled
from mteblite.pools.bm25_search import BLOCK, SLACK, Found, Postings, Query

READ_PER_LOOK_UP = 40
"""Postings that are read in a row in the time of one look-up, which misses the cache."""


def search_all(postings: Postings, queries: Sequence[Query], number: int) -> list[Found]:
    """Return the `number` best documents of each query and all that tie with the last of them."""
    bounds = np.cumsum([0, *(len(query.terms) for query in queries)])
    terms = np.array([term for query in queries for term in query.terms], dtype=np.int64)
    repeats = np.array([n for query in queries for n in query.repeats], dtype=np.float32)
    ends, rows, scores = _search_all(*postings, bounds, terms, repeats, number)
    firsts = [0, *ends[:-1].tolist()]
    return [(rows[a:z], scores[a:z]) for a, z in zip(firsts, ends.tolist(), strict=False)]


@compiled
def _search_all(
    starts, documents, scores, limits, blocks, frequent, n, bounds, terms, repeats, number
):
    """Return the (queries,) end of each query's documents, and (found,) rows and scores."""
    total, rows = np.zeros(n, np.float32), np.empty(n, np.int32)
    heap = np.empty(number, np.float32)
    lists = (starts, documents, scores, limits, blocks, frequent)
    ends = np.empty(len(bounds) - 1, np.int64)
    out_rows, out_scores, used = np.empty(1024, np.int32), np.empty(1024, np.float32), 0
    for query in range(len(bounds) - 1):
        part = slice(bounds[query], bounds[query + 1])
        found, seen = _collect(lists, terms[part], repeats[part], total, rows, heap)
        kth = np.float32(0)
        if found > number:
            for i in range(found):
                _keep_largest(heap, i, total[rows[i]])
            kth = heap[0]
        for i in range(found):
            value = total[rows[i]]
            if value >= kth:
                if used == len(out_rows):
                    out_rows = np.concatenate((out_rows, np.empty_like(out_rows)))
                    out_scores = np.concatenate((out_scores, np.empty_like(out_scores)))
                out_rows[used], out_scores[used] = rows[i], value
                used += 1
        for i in range(seen):
            total[rows[i]] = 0
        ends[query] = used
    return ends, out_rows[:used], out_scores[:used]


@compiled
def _collect(lists, terms, repeats, total, rows, heap):
    """Sum up a query; return (documents that may be among the best, all touched), in `rows`."""
    starts, documents, scores, limits, _, _ = lists
    seen, reached, rest = 0, 0.0, 0.0
    for rank in range(len(terms)):
        rest += repeats[rank] * limits[terms[rank]]
    for rank in range(len(terms)):
        if seen > len(heap) and reached > rest:
            for i in range(seen):
                _keep_largest(heap, i, total[rows[i]])
            if heap[0] * SLACK > rest:
                found = _look_up(lists, terms[rank:], repeats[rank:], rest, total, rows, heap, seen)
                return found, seen
        limit = repeats[rank] * limits[terms[rank]]
        rest, reached = rest - limit, reached + limit
        for place in range(starts[terms[rank]], starts[terms[rank] + 1]):
            row = documents[place]
            if total[row] == 0:
                rows[seen] = row
                seen += 1
            total[row] += repeats[rank] * scores[place]
    return seen, seen


@compiled
def _look_up(lists, terms, repeats, rest, total, rows, heap, seen):
    """Add further terms to the documents found; move those that may win to the front.

    The documents ahead so far are looked up first: their scores are close to the best ones, and
    nearly all others drop out against them.
    """
    starts, documents, scores, limits, _, _ = lists
    ahead, count = heap[0], 0
    for i in range(seen):
        value = total[rows[i]]
        if value >= ahead and count < len(heap):
            for rank in range(len(terms)):
                value += repeats[rank] * _score(lists, terms[rank], rows[i])
            _keep_largest(heap, count, value)
            count += 1
    least, found = heap[0] * SLACK, seen
    for rank in range(len(terms)):
        kept = 0
        for i in range(found):
            row = rows[i]
            if total[row] + rest >= least:
                rows[kept], rows[i] = row, rows[kept]
                kept += 1
        found, term = kept, terms[rank]
        if starts[term + 1] - starts[term] < READ_PER_LOOK_UP * found:
            for place in range(starts[term], starts[term + 1]):
                if total[documents[place]] > 0:
                    total[documents[place]] += repeats[rank] * scores[place]
        else:
            for i in range(found):
                total[rows[i]] += repeats[rank] * _score(lists, term, rows[i])
        rest -= repeats[rank] * limits[term]
    return found


@compiled
def _score(lists, term, row):
    """Return what a term adds to a document, 0 without it."""
    starts, documents, scores, _, blocks, frequent = lists
    low, last = starts[term], starts[term + 1]
    high, block = last, frequent[term]
    if block >= 0:
        high = low + blocks[block, row // BLOCK + 1]
        low = low + blocks[block, row // BLOCK]
    while low < high:
        middle = (low + high) >> 1
        if documents[middle] < row:
            low = middle + 1
        else:
            high = middle
    if low < last and documents[low] == row:
        return scores[low]
    return np.float32(0)


@compiled
def _keep_largest(heap, count, value):
    """Put value number `count` into a heap of the largest values, the least of them first."""
    if count >= len(heap) and value <= heap[0]:
        return
    if count < len(heap):
        place = count
        while place > 0 and heap[(place - 1) >> 1] > value:
            heap[place] = heap[(place - 1) >> 1]
            place = (place - 1) >> 1
        heap[place] = value
    else:
        place, child = 0, 1
        while child < len(heap):
            if child + 1 < len(heap) and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= value:
                break
            heap[place] = heap[child]
            place, child = child, 2 * child + 1
        heap[place] = value
