"""First-stage candidates: time and memory of the product and of bm25s with its own index.

Generated documents of 30 to 119 words, queries of 8 words, top 30. Each path runs in a process of
its own, from the texts, which are generated meanwhile, to the lists. Peak memory is that of the
process less what it used before the corpus. Lists are the same where they hold the same documents;
bm25s alone takes any of the documents that tie with the last one.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import zipf_texts
from measuring import arguments, median_ratio, report

TOP = 30


def main() -> None:
    """Run every path, `--repetitions` times."""
    asked = arguments(
        __doc__ or "", documents=100_000, queries=1000, repetitions=3, paths="bm25s,mteblite"
    )
    taken: dict[str, list[dict[str, Any]]] = {path: [] for path in asked.paths.split(",")}
    for _ in range(asked.repetitions):
        for path, runs in taken.items():
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
                runs.append(process.submit(run, path, asked.documents, asked.queries).result())
    base = next(iter(taken.values()))
    rows = [
        {
            "path": path,
            "seconds": min(run["seconds"] for run in runs),
            "time / first": median_ratio(_all(runs, "seconds"), _all(base, "seconds")),
            "core time / first": median_ratio(_all(runs, "cpu"), _all(base, "cpu")),
            "peak MiB": max(run["peak"] for run in runs),
            "same lists": sum(
                set(a) == set(b) for a, b in zip(runs[0]["found"], base[0]["found"], strict=True)
            )
            / asked.queries,
        }
        for path, runs in taken.items()
    ]
    report(f"BM25: top {TOP} of {asked.documents:,} documents", rows, as_json=asked.json)


def run(path: str, documents: int, queries: int) -> dict[str, Any]:
    """Return seconds, seconds of processors, peak memory in MiB, and document ids per query."""
    from mteblite.pools.bm25 import best_documents
    from mteblite.pools.corpus import Corpus

    questions = zipf_texts.queries(queries)
    before, started, cpu = _peak_mib(), time.perf_counter(), time.process_time()
    corpus = Corpus([f"d{row:08d}" for row in range(documents)], zipf_texts.documents)
    search = best_documents if path == "mteblite" else _bm25s
    found = search(corpus, questions, TOP)
    return {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - cpu,
        "peak": _peak_mib() - before,
        "found": found,
    }


def _bm25s(corpus: Any, questions: list[str], number: int) -> list[list[str]]:
    import bm25s

    from mteblite.pools.bm25 import K1, B
    from mteblite.pools.tokens import tokenize

    codes: dict[str, int] = {}
    tokens = [
        [codes.setdefault(term, len(codes)) for term in tokenize(text)]
        for batch in corpus.batches()
        for text in batch
    ]
    index = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numba")
    index.index((tokens, codes), show_progress=False)
    asked = [
        [codes[term] for term in tokenize(question) if term in codes] for question in questions
    ]
    rows, _ = index.retrieve(asked, k=number, n_threads=-1, show_progress=False)
    return [[corpus.ids[row] for row in found] for found in rows.tolist()]


def _all(runs: list[dict[str, Any]], key: str) -> list[float]:
    return [run[key] for run in runs]


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
