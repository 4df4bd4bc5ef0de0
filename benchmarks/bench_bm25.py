"""First-stage candidates: the product's BM25 against bm25s on the same tokens, in one run.

100,000 generated documents, queries of 8 words, top 30. bm25s runs with numba, its fastest
backend, and with numpy; its result is one of the exact ones but for documents of equal score.
Queries per second are of the search alone (queries as text, parsed inside); `cpu` is the same in
processor time, for machines with other work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import zipf_texts
from measuring import arguments, interleaved, median_ratio, report

TOP = 30


def main() -> None:
    """Index once, search repeatedly."""
    asked = arguments(__doc__ or "", documents=100_000, queries=2000, repetitions=3, threads=2)
    import bm25s

    from mteblite.pools import bm25
    from mteblite.pools.tokens import tokenize

    questions = zipf_texts.queries(asked.queries)
    ids = [f"d{row:08d}" for row in range(asked.documents)]
    terms = {term for question in questions for term in tokenize(question)}
    batches = [
        zipf_texts.documents(range(start, min(start + zipf_texts.BLOCK, asked.documents)))
        for start in range(0, asked.documents, zipf_texts.BLOCK)
    ]
    built: dict[str, float] = {}
    index = _timed(built, "mteblite", lambda: bm25.Index(batches, terms=terms))
    tokens = [tokenize(text) for batch in batches for text in batch]
    theirs = bm25s.BM25(method="lucene", k1=bm25.K1, b=bm25.B, backend="numba")
    _timed(built, "bm25s", lambda: theirs.index(tokens, show_progress=False))
    asked_tokens = [[t for t in tokenize(q) if t in theirs.vocab_dict] for q in questions]

    def compiled() -> Any:
        return theirs.retrieve(asked_tokens, k=TOP, n_threads=asked.threads, show_progress=False)

    def ours(threads: int) -> Callable[[], Any]:
        return lambda: index.top_of_all(questions, TOP, ids, threads=threads)

    runs = {f"mteblite, {n} threads": ours(n) for n in sorted({1, asked.threads})}
    runs[f"bm25s numba, {asked.threads} threads"] = compiled
    for run in runs.values():
        run()  # compile
    _require_same(runs["mteblite, 1 threads"](), index, questions)
    taken = interleaved(runs, asked.repetitions)
    baseline = taken[list(runs)[-1]]
    rows = [
        {
            "path": name,
            "queries/s": asked.queries / min(own.wall),
            "queries/s of one core": asked.queries / min(own.cpu),
            "time / bm25s": median_ratio(own.wall, baseline.wall),
            "core time / bm25s": median_ratio(own.cpu, baseline.cpu),
            "index, documents/s": asked.documents / built[name.split()[0].strip(",")],
        }
        for name, own in taken.items()
    ]
    report(f"BM25: top {TOP} of {asked.documents} documents", rows, as_json=asked.json)


def _timed(into: dict[str, float], name: str, make: Callable[[], Any]) -> Any:
    started = time.perf_counter()
    made = make()
    into[name] = time.perf_counter() - started
    return made


def _require_same(found: list[list[int]], index: Any, questions: list[str]) -> None:
    """The fast path must return the best by the plain sum of scores."""
    for rows, question in list(zip(found, questions, strict=True))[:50]:
        scores = index.scores(question)
        best = np.sort(scores[scores > 0])[::-1][:TOP]
        np.testing.assert_allclose(scores[rows], best, rtol=1e-5)


if __name__ == "__main__":
    main()
