"""First-stage candidates by BM25 over a streamed corpus.

Scores are Lucene's variant of Okapi BM25 (its idf, log(1 + (N - df + .5)/(df + .5)), is never
negative), k1 = 0.9 and b = 0.4 as in the published method, computed eagerly per posting as in
BM25S (arXiv 2407.03618) and equal to `bm25s.BM25(method="lucene")` on the same tokens. They are
computed here, not by bm25s 0.3, for three reasons, measured by bench_bm25.py and
bench_corpus_memory.py in `benchmarks/`:

- its indexer takes every document's tokens as Python lists: 3.1 GB for a million generated
  documents, against 0.7 GB of this whole stage, which reads documents in batches and keeps only
  terms of the queries, 8 bytes per posting (13 while indexing);
- it breaks ties by what its heap held before, here they go to the smallest document id;
- it scores every document for every query, here documents that cannot be among the best are
  skipped (MaxScore), which is exact and takes 0.6 of its time with numba on both sides.

Large corpora are searched by compiled code if numba is installed, else, and for small corpora,
by the same algorithm in NumPy, some 20 times slower; the result is the same to the bit.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from mteblite.pools.bm25_search import Found, Postings, Query, make_postings, search
from mteblite.pools.tokens import tokenize

K1 = 0.9
B = 0.4

COMPILED_FROM = 20_000
"""Documents from which compiled search pays: numba takes a second to load or compile."""


class Index:
    """BM25 scores of every (term, document) posting, by term."""

    def __init__(
        self,
        batches: Iterable[Sequence[str]],
        *,
        terms: Collection[str] | None = None,
        k1: float = K1,
        b: float = B,
    ) -> None:
        """Index a corpus.

        Args:
            batches: the texts in row order, a batch at a time.
            terms: the only terms that will be asked for, so that memory does not grow with the
                vocabulary of the corpus; None: all. Scores do not depend on it.
            k1: saturation of term frequency.
            b: weight of document length.
        """
        self.vocabulary = {term: code for code, term in enumerate(sorted(terms or ()))}
        counted, lengths = _count(batches, self.vocabulary, grows=terms is None)
        frequencies = np.zeros(len(self.vocabulary), dtype=np.int64)
        for part in counted:
            frequencies[part.terms] += part.runs
        self.n_documents = n = len(lengths)
        self._idf = np.log1p((n - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)
        mean_length = max(lengths.mean(), 1e-9) if n else 1.0
        norms = (k1 * (1 - b + b * lengths / mean_length)).astype(np.float32)
        self.postings = self._place(counted, frequencies, norms)
        self._ranks = {
            term: (int(frequencies[code]), term)
            for term, code in self.vocabulary.items()
            if frequencies[code]
        }

    def scores(self, query: str) -> np.ndarray:
        """Return the (n_documents,) float32 scores of a query."""
        total = np.zeros(self.n_documents, dtype=np.float32)
        for term in tokenize(query):
            code = self.vocabulary.get(term)
            if code is not None:
                rows, scores = self.postings.of(code)
                total[rows] += scores
        return total

    def top(self, query: str, number: int, ids: Sequence[str]) -> list[int]:
        """Return `top_of_all` of one query."""
        return self.top_of_all([query], number, ids)[0]

    def top_of_all(
        self, queries: Sequence[str], number: int, ids: Sequence[str], *, threads: int | None = None
    ) -> list[list[int]]:
        """Return per query the rows of the best documents that share a term with it.

        Args:
            queries: the queries.
            number: how many documents at most.
            ids: document id per row; equal scores go to the smaller id.
            threads: None: one per processor. The result does not depend on it.
        """
        parsed = [self._parse(query) for query in queries]
        found: Iterable[Found]
        if self.n_documents >= COMPILED_FROM and importlib.util.find_spec("numba"):
            from mteblite.pools.bm25_compiled import search_all

            number_of_parts = min(threads or os.cpu_count() or 1, max(len(parsed) // 32, 1))
            bounds = np.linspace(0, len(parsed), number_of_parts + 1).astype(int)
            parts = [parsed[a:z] for a, z in itertools.pairwise(bounds.tolist())]
            with ThreadPoolExecutor(len(parts)) as pool:
                done = pool.map(lambda part: search_all(self.postings, part, number), parts)
                found = [result for part in done for result in part]
        else:
            found = (search(self.postings, query, number) for query in parsed)
        return [_in_order(rows, scores, number, ids) for rows, scores in found]

    def _parse(self, query: str) -> Query:
        """Return the known terms of a query, rarest first, and how often each occurs."""
        tokens = [token for token in tokenize(query) if token in self._ranks]
        # by name where equally rare: sums must not depend on the numbering of terms
        distinct = sorted(set(tokens), key=self._ranks.__getitem__)
        return Query(
            [self.vocabulary[term] for term in distinct],
            [1] * len(tokens)
            if len(distinct) == len(tokens)
            else [tokens.count(term) for term in distinct],
        )

    def _place(
        self, counted: deque[_Counts], frequencies: np.ndarray, norms: np.ndarray
    ) -> Postings:
        starts = np.concatenate([[0], np.cumsum(frequencies)])
        documents = np.empty(starts[-1], dtype=np.int32)
        scores = np.empty(starts[-1], dtype=np.float32)
        free = starts[:-1].copy()
        while counted:  # each batch goes as its postings move into place
            part = counted.popleft()
            before = np.cumsum(part.runs) - part.runs
            places = np.repeat(free[part.terms] - before, part.runs)
            places += np.arange(len(places))
            rows = part.rows.astype(np.int32) + np.int32(part.first)
            tf = part.counts.astype(np.float32)
            documents[places] = rows
            scores[places] = np.repeat(self._idf[part.terms], part.runs) * (tf / (tf + norms[rows]))
            free[part.terms] += part.runs
        return make_postings(starts, documents, scores, len(norms))


class _Counts(NamedTuple):
    """The distinct (term, document) pairs of a batch, by term.

    Attributes:
        first: row of the batch's first document.
        terms: (t,) int32 distinct terms.
        runs: (t,) int32 documents of each.
        rows: (p,) uint16 documents, counted from `first`.
        counts: (p,) uint16 occurrences, at most 65,535.
    """

    first: int
    terms: np.ndarray
    runs: np.ndarray
    rows: np.ndarray
    counts: np.ndarray


def _count(
    batches: Iterable[Sequence[str]], vocabulary: dict[str, int], *, grows: bool
) -> tuple[deque[_Counts], np.ndarray]:
    """Return the term counts of each batch and the (n_documents,) lengths."""
    counted: deque[_Counts] = deque()
    lengths = [np.zeros(0, dtype=np.int64)]
    first = 0
    for batch in batches:
        for start in range(0, len(batch), 65_536):  # rows of a part are 16 bits
            part = batch[start : start + 65_536]
            codes, sizes = _encode(part, vocabulary, grows)
            pairs = (codes << 32) | np.repeat(np.arange(len(part)), sizes)
            distinct, repeats = np.unique(pairs[codes >= 0], return_counts=True)
            terms, runs = np.unique(distinct >> 32, return_counts=True)
            counted.append(
                _Counts(
                    first,
                    terms.astype(np.int32),
                    runs.astype(np.int32),
                    (distinct & 0xFFFFFFFF).astype(np.uint16),
                    np.minimum(repeats, 65_535).astype(np.uint16),
                )
            )
            lengths.append(sizes)
            first += len(part)
    return counted, np.concatenate(lengths)


def _encode(
    texts: Sequence[str], vocabulary: dict[str, int], grows: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of all tokens in a row (-1: not wanted), and how many per text."""
    codes: list[int] = []
    sizes = np.empty(len(texts), dtype=np.int64)
    known, add = vocabulary.get, vocabulary.setdefault
    for row, text in enumerate(texts):
        tokens = tokenize(text)
        sizes[row] = len(tokens)
        codes += (
            [add(token, len(vocabulary)) for token in tokens]
            if grows
            else [known(token, -1) for token in tokens]
        )
    return np.array(codes, dtype=np.int64), sizes


def _in_order(rows: np.ndarray, scores: np.ndarray, number: int, ids: Sequence[str]) -> list[int]:
    """Return the best rows, best first; of equal scores the smaller id."""
    values, places = scores.tolist(), rows.tolist()
    if len(set(values)) == len(values):
        ranked = sorted(zip(values, places, strict=True), reverse=True)
        return [row for _, row in ranked[:number]]
    named = sorted((-v, ids[row], row) for v, row in zip(values, places, strict=True))
    return [row for _, _, row in named[:number]]
