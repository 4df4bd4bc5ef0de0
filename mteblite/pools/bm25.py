"""First-stage candidates by BM25 over a streamed corpus.

Scores are Lucene's variant of Okapi BM25 (its idf, log(1 + (N - df + .5)/(df + .5)), is never
negative) with k1 = 0.9 and b = 0.4 as in the published method. bm25s (arXiv 2407.03618) adds up
the precomputed scores of (term, document) pairs and keeps the largest sums.

This module counts the pairs itself, because the indexer of bm25s needs the tokens of all documents
as Python lists (`benchmarks/bench_bm25.py` measures the cost). It reads documents in batches and
keeps only terms of the queries, 8 bytes per pair.

The order is the same on every machine. Sums are float32 and run from the rarest term of a query to
the most frequent one; equally frequent terms are in order of name, equal sums in order of id.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from mteblite.pools.corpus import Corpus
from mteblite.pools.tokens import tokenize

if TYPE_CHECKING:
    from scipy.sparse import csc_array

K1 = 0.9
B = 0.4

COMPILED_FROM = 50_000_000
"""Documents times queries from which numba is faster than NumPy, its loading included."""

PART = 64
"""Queries that a thread takes at a time."""


def best_documents(corpus: Corpus, queries: Sequence[str], number: int) -> list[list[str]]:
    """Return per query the ids of at most `number` documents that share a term with it, best first.

    Raises:
        ValueError: the text of a document is missing; the message names row and document id.
    """
    asked = [Counter(tokenize(query)) for query in queries]
    columns = {term: column for column, term in enumerate(sorted(set[str]().union(*asked)))}
    scores = _scores(corpus, columns)
    frequencies = np.diff(scores.indptr).tolist()
    ordered = [
        sorted((frequencies[columns[term]], term, times) for term, times in query.items())
        for query in asked
    ]
    # (term, its occurrences in a query) is a column, so that bm25s adds a repeated term once
    weighted = sorted({key for query in ordered for key in query if key[0]})
    scores = scores[:, [columns[term] for _, term, _ in weighted]]
    times = np.array([times for _, _, times in weighted], dtype=np.float32)
    scores.data *= np.repeat(times, np.diff(scores.indptr))
    codes = {key: code for code, key in enumerate(weighted)}
    coded = [[codes[key] for key in query if key[0]] for query in ordered]
    known = [query for query in coded if query]
    engine = _engine(scores, compiled=len(known) * len(corpus) >= COMPILED_FROM)
    search = functools.partial(_search, engine, corpus.ids, number, number + 1)
    with ThreadPoolExecutor() as pool:
        parts = pool.map(search, [known[i : i + PART] for i in range(0, len(known), PART)])
        found = itertools.chain.from_iterable(parts)
        return [next(found) if query else [] for query in coded]


def _scores(corpus: Corpus, columns: Mapping[str, int]) -> csc_array:
    """Return the (documents, terms) float32 scores of the terms in `columns` in each document."""
    from scipy.sparse import csr_array, vstack

    parts = [csr_array((0, len(columns)), dtype=np.float32)]
    lengths: list[int] = []
    for batch in corpus.batches():
        codes: list[int] = []
        ends = [0]
        for text in batch:
            tokens = tokenize(text)
            codes += [columns[token] for token in tokens if token in columns]
            ends.append(len(codes))
            lengths.append(len(tokens))
        places = (np.array(codes, np.int32), np.array(ends, np.int32))
        counts = (np.ones(len(codes), np.float32), *places)
        parts.append(csr_array(counts, shape=(len(batch), len(columns))))
        parts[-1].sum_duplicates()
    scores = vstack(parts, format="csr")
    del parts
    scores = scores.tocsc()
    frequencies = np.diff(scores.indptr)
    idf = np.log1p((len(lengths) - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)
    sizes = np.array(lengths, dtype=np.int64)
    relative = sizes / max(sizes.mean(), 1e-9) if lengths else sizes
    norms = (K1 * (1 - B + B * relative)).astype(np.float32)
    scores.data /= scores.data + norms[scores.indices]
    scores.data *= np.repeat(idf, frequencies)
    return scores


def _engine(scores: csc_array, *, compiled: bool) -> Any:
    """Return bm25s with these (documents, terms) scores as its index."""
    import bm25s

    if compiled:
        from bm25s.numba import retrieve_utils

        # Without numba's cache, bm25s compiles its search for seconds in every process. There is no
        # cache where no folder can be written, or where another bm25s renamed the function.
        with contextlib.suppress(RuntimeError, AttributeError):
            retrieve_utils._retrieve_internal_jitted_serial.enable_caching()
    engine = bm25s.BM25(backend="numba" if compiled else "numpy", auto_compile=False)
    engine.scores = {
        "data": scores.data,
        "indices": scores.indices,
        "indptr": scores.indptr,
        "num_docs": scores.shape[0],
    }
    engine.unique_token_ids_set = set(range(scores.shape[1]))
    engine.nonoccurrence_array = None
    return engine


def _search(
    engine: Any, ids: Sequence[str], number: int, width: int, queries: Sequence[list[int]]
) -> list[list[str]]:
    """Return the ids of each query's best documents, best first.

    Of documents that tie with the last one, bm25s keeps an arbitrary one. So the search asks for
    one more than `number`, and for 8 times as many as long as the last two tie.

    Args:
        engine: bm25s with an index.
        ids: document id per row.
        number: how many documents at most.
        width: how many to ask bm25s for, > `number`.
        queries: the columns of each query, at least one.
    """
    width = min(width, len(ids))
    # One thread: parallel loops of numba fail where two threads of Python start them together.
    rows, scores = engine.retrieve(
        queries, k=width, n_threads=0, show_progress=False, backend_selection=engine.backend
    )
    best = []
    for query, documents, values in zip(queries, rows.tolist(), scores.tolist(), strict=True):
        if width < len(ids) and 0 < values[-1] == values[number - 1]:
            best += _search(engine, ids, number, 8 * width, [query])
        else:
            named = zip(values, (ids[row] for row in documents), strict=True)
            ranked = heapq.nsmallest(number, ((-value, name) for value, name in named if value))
            best.append([name for _, name in ranked])
    return best
