"""`bm25_search.search` for many queries, compiled by numba: the same documents, bit for bit.

Beyond the plain version, documents that cannot reach the best ones any more are dropped as soon
as common terms are only looked up. Compiled code is kept in numba's cache beside this file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from mteblite_assets.pools.bm25_search import SLACK, Found, Postings, Query

_compiled = numba.njit(cache=True, nogil=True, boundscheck=False)


def search_all(postings: Postings, queries: Sequence[Query], number: int) -> list[Found]:
    """Return the `number` best documents of each query and all that tie with the last of them."""
    bounds = np.cumsum([0, *(len(query.terms) for query in queries)])
    terms = np.concatenate([np.empty(0, np.int64), *(query.terms for query in queries)])
    repeats = np.concatenate([np.empty(0), *(query.repeats for query in queries)])
    ends, rows, scores = _search_all(*postings, bounds, terms, repeats, number)
    pieces = zip(np.split(rows, ends[:-1]), np.split(scores, ends[:-1]), strict=True)
    return list(pieces) if queries else []


@_compiled
def _search_all(starts, documents, scores, limits, n, bounds, terms, repeats, number):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    total = np.zeros(n)
    rows = np.empty(n, np.int32)
    heap = np.empty(number)
    ends = np.empty(len(bounds) - 1, np.int64)
    out_rows, out_scores, used = np.empty(1024, np.int32), np.empty(1024, np.float32), 0
    for query in range(len(bounds) - 1):
        first, last = bounds[query], bounds[query + 1]
        touched = _collect(
            starts, documents, scores, limits, terms[first:last], repeats[first:last],
            number, total, rows, heap,
        )
        found, seen = touched
        kth = np.float32(0)
        if found > number:
            for i in range(found):
                _keep_largest(heap, i, number, np.float64(np.float32(total[rows[i]])))
            kth = np.float32(heap[0])
        for i in range(found):
            value = np.float32(total[rows[i]])
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


@_compiled
def _collect(starts, documents, scores, limits, terms, repeats, number, total, rows, heap):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Sum up a query; return (documents that may be among the best, all touched), in `rows`."""
    seen, reached, rest = 0, 0.0, 0.0
    for rank in range(len(terms)):
        rest += repeats[rank] * limits[terms[rank]]
    for rank in range(len(terms)):
        if seen > number and reached > rest:
            for i in range(seen):
                _keep_largest(heap, i, number, total[rows[i]])
            if heap[0] * SLACK > rest:
                found = _look_up(
                    starts, documents, scores, limits, terms, repeats, rank, rest,
                    number, total, rows, seen, heap,
                )
                return found, seen
        limit = repeats[rank] * limits[terms[rank]]
        rest, reached = rest - limit, reached + limit
        for place in range(starts[terms[rank]], starts[terms[rank] + 1]):
            row = documents[place]
            if total[row] == 0:
                rows[seen] = row
                seen += 1
            total[row] += repeats[rank] * np.float64(scores[place])
    return seen, seen


@_compiled
def _look_up(
    starts, documents, scores, limits, terms, repeats, rank, rest, number, total, rows, seen, heap
):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add the terms from `rank` on to the documents found; those that may win come first."""
    found = seen
    for later in range(rank, len(terms)):
        least, kept = heap[0] * SLACK, 0
        for i in range(found):
            if total[rows[i]] + rest >= least:
                rows[kept], rows[i] = rows[i], rows[kept]
                kept += 1
        found = kept
        first, last = starts[terms[later]], starts[terms[later] + 1]
        for i in range(found):
            low, high, row = first, last, rows[i]
            while low < high:
                middle = (low + high) >> 1
                if documents[middle] < row:
                    low = middle + 1
                else:
                    high = middle
            if low < last and documents[low] == row:
                total[row] += repeats[later] * np.float64(scores[low])
        rest -= repeats[later] * limits[terms[later]]
        for i in range(found):
            _keep_largest(heap, i, number, total[rows[i]])
    return found


@_compiled
def _keep_largest(heap, count, number, value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Put value number `count` into a heap of the `number` largest, the least of them first."""
    if count < number:
        place = count
        while place > 0 and heap[(place - 1) >> 1] > value:
            heap[place] = heap[(place - 1) >> 1]
            place = (place - 1) >> 1
        heap[place] = value
    elif value > heap[0]:
        place, child = 0, 1
        while child < number:
            if child + 1 < number and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= value:
                break
            heap[place] = heap[child]
            place, child = child, 2 * child + 1
        heap[place] = value
