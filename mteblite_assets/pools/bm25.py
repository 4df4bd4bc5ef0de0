"""First-stage candidates by BM25 over a streamed corpus.

Scores are Lucene's variant of Okapi BM25 (its idf, log(1 + (N - df + .5)/(df + .5)), is never
negative), k1 = 0.9 and b = 0.4 as in the published method, computed eagerly per posting as in
BM25S (arXiv 2407.03618) and equal to `bm25s.BM25(method="lucene")` on the same tokens. They are
computed here, not by bm25s, because its indexer holds every document's tokens as Python lists
and breaks ties by row: here documents pass in batches, a distinct term of a document takes 8
bytes (18 while indexing), and ties go to the smallest document id.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

K1 = 0.9
B = 0.4

_ARABIC_MARKS = [*range(0x064B, 0x0660), 0x0670, 0x0640, *range(0x06D6, 0x06EE)]
_INVISIBLE = [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xAD]
_DROPPED = dict.fromkeys([*_ARABIC_MARKS, *_INVISIBLE])
# Han, kana and Thai are written without spaces: one token per character. Elsewhere a token is a
# run of letters and digits; South Asian vowel signs are no letters for `re`, but part of words.
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f]|(?:[^\W_]|[\u0900-\u0dff])+"
)


def tokenize(text: str) -> list[str]:
    """Return the terms of a text: case-folded, without Arabic diacritics or invisible marks."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).translate(_DROPPED).casefold())


class Index:
    """BM25 scores of every (term, document) posting, by term."""

    def __init__(self, batches: Iterable[Sequence[str]], *, k1: float = K1, b: float = B) -> None:
        """Index a corpus.

        Args:
            batches: the texts in row order, a batch at a time.
            k1: saturation of term frequency.
            b: weight of document length.
        """
        self.vocabulary: dict[str, int] = {}
        counted, lengths = self._count(batches)
        self.n_documents = n = len(lengths)
        frequencies = np.zeros(len(self.vocabulary), dtype=np.int64)
        for part in counted:
            frequencies += np.bincount(part.terms, minlength=len(frequencies))
        self._starts = np.concatenate([[0], np.cumsum(frequencies)])
        self._documents = np.empty(self._starts[-1], dtype=np.int32)
        self._scores = np.empty(self._starts[-1], dtype=np.float32)
        idf = np.log1p((n - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)
        mean_length = max(lengths.mean(), 1e-9) if n else 1.0
        norms = (k1 * (1 - b + b * lengths / mean_length)).astype(np.float32)
        free = self._starts[:-1].copy()
        while counted:  # each batch goes as its postings move into place: half the memory
            part = counted.popleft()
            terms, starts, runs = np.unique(part.terms, return_index=True, return_counts=True)
            within = np.arange(len(part.terms)) - np.repeat(starts, runs)
            places = np.repeat(free[terms], runs) + within
            self._documents[places] = part.rows
            tf = part.counts.astype(np.float32)
            self._scores[places] = idf[part.terms] * (tf / (tf + norms[part.rows]))
            free[terms] += runs
        self._limits = np.zeros(len(self.vocabulary), dtype=np.float32)
        if len(self._scores):
            self._limits = np.maximum.reduceat(self._scores, self._starts[:-1])

    def scores(self, query: str) -> np.ndarray:
        """Return the (n_documents,) float32 scores of a query."""
        total = np.zeros(self.n_documents, dtype=np.float32)
        for term in tokenize(query):
            code = self.vocabulary.get(term)
            if code is not None:
                total[self._rows_of(code)] += self._scores_of(code)
        return total

    def top(self, query: str, number: int, ids: Sequence[str]) -> list[int]:
        """Return the rows of the best documents that share a term with the query.

        Rare terms go first. Once no document without one of them can reach the best ones any
        more, common terms are only looked up for the documents found (MaxScore, Turtle and
        Flood 1995): exact, and without reading the long lists of common words.

        Args:
            query: the query.
            number: how many at most.
            ids: document id per row; equal scores go to the smaller id.
        """
        repeats = Counter(t for t in tokenize(query) if t in self.vocabulary)
        terms = sorted(repeats, key=lambda t: (len(self._rows_of(self.vocabulary[t])), t))
        limits = [repeats[t] * float(self._limits[self.vocabulary[t]]) for t in terms]
        total = np.zeros(self.n_documents)
        rows = np.empty(0, dtype=np.int64)
        for rank, term in enumerate(terms):
            code = self.vocabulary[term]
            listed, values = self._rows_of(code), repeats[term] * self._scores_of(code)
            rest = sum(limits[rank:]) * 1.0001
            if (
                len(rows) > number
                and sum(limits[:rank]) > rest
                and _nth(total[rows], number) > rest
            ):
                found = np.minimum(np.searchsorted(listed, rows), len(listed) - 1)
                total[rows] += np.where(listed[found] == rows, values[found], 0)
            else:
                total[listed] += values
                few = len(rows) + len(listed) < self.n_documents // 16
                rows = np.union1d(rows, listed) if few else np.flatnonzero(total)
        # float32 again: documents of one score tie whatever their last digits
        final = total[rows].astype(np.float32)
        if len(rows) > number:
            kept = final >= _nth(final, number)
            rows, final = rows[kept], final[kept]
        order = sorted(range(len(rows)), key=lambda i: (-final[i], ids[int(rows[i])], rows[i]))
        return [int(rows[i]) for i in order[:number]]

    def _rows_of(self, code: int) -> np.ndarray:
        return self._documents[self._starts[code] : self._starts[code + 1]]

    def _scores_of(self, code: int) -> np.ndarray:
        return self._scores[self._starts[code] : self._starts[code + 1]]

    def _count(self, batches: Iterable[Sequence[str]]) -> tuple[deque[_Postings], np.ndarray]:
        """Return the term counts of each batch, by term, and the (n_documents,) lengths."""
        counted: deque[_Postings] = deque()
        lengths = [np.zeros(0, dtype=np.int64)]
        first = 0
        for batch in batches:
            tokens = [tokenize(text) for text in batch]
            sizes = np.array([len(t) for t in tokens], dtype=np.int64)
            add = self.vocabulary.setdefault
            codes = np.array(
                [add(t, len(self.vocabulary)) for document in tokens for t in document],
                dtype=np.int64,
            )
            pairs = (codes << 32) | np.repeat(np.arange(first, first + len(batch)), sizes)
            distinct, repeats = np.unique(pairs, return_counts=True)
            counted.append(
                _Postings(
                    terms=(distinct >> 32).astype(np.int32),
                    rows=(distinct & 0xFFFFFFFF).astype(np.int32),
                    counts=np.minimum(repeats, 65_535).astype(np.uint16),
                )
            )
            lengths.append(sizes)
            first += len(batch)
        return counted, np.concatenate(lengths)


class _Postings(NamedTuple):
    """Term, document row and count of each distinct (term, document) of a batch, by term."""

    terms: np.ndarray
    rows: np.ndarray
    counts: np.ndarray


def _nth(scores: np.ndarray, number: int) -> float:
    """Return the `number`-th largest score."""
    return float(np.partition(scores, len(scores) - number)[len(scores) - number])
