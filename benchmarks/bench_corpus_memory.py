"""Memory of drawing a retrieval pool from a large corpus of generated texts.

The whole path runs: streaming, counting, BM25 candidates of 1,000 queries, random documents, the
pool. `--library bm25s` indexes the same corpus with bm25s instead, for comparison. Peak memory is
this process's, less what it used before; it grows linearly with the corpus, so 5 million
documents follow from one million.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import pandas as pd
import zipf_texts
from measuring import arguments, report

TARGET = 5_000_000


def main() -> None:
    """Draw one pool and report the peak."""
    asked = arguments(__doc__ or "", documents=1_000_000, queries=1000, library="mteblite")
    from mteblite.pools.corpus import Corpus
    from mteblite.suites.pool_settings import PoolSettings
    from mteblite.task_types.retrieval import pool as retrieval

    questions = zipf_texts.queries(asked.queries)
    before = _peak_mib()
    started = time.perf_counter()
    corpus = Corpus([f"d{row:08d}" for row in range(asked.documents)], zipf_texts.documents)
    facts: dict[str, Any] = {}
    if asked.library == "mteblite":
        pool = retrieval.draw_pool(_task(corpus, questions), PoolSettings())
        facts = {"pool documents": len(pool.frames["documents"]), "texts": len(pool.texts)}
    else:
        _index_with_bm25s(corpus)
    seconds = time.perf_counter() - started
    used = _peak_mib() - before
    row = {
        "library": asked.library,
        "documents": asked.documents,
        "seconds": seconds,
        "peak MiB": used,
        f"MiB at {TARGET:,}": used * TARGET / asked.documents,
        **facts,
    }
    report("memory of a pool from a large corpus", [row], as_json=asked.json)


def _task(corpus: Any, questions: list[str]) -> Any:
    from mteblite.pools.task_data import TaskData
    from mteblite.suites.task_description import TaskDescription

    names = [f"q{number}" for number in range(len(questions))]
    relevant = [corpus.ids[n * 997 % len(corpus)] for n in range(len(names))]
    cell = {
        "corpus": corpus,
        "queries": pd.DataFrame({"query_id": names, "text": questions}),
        "qrels": pd.DataFrame({"query_id": names, "doc_id": relevant, "relevance": 1}),
        "top_ranked": None,
    }
    about = TaskDescription("Generated", "Retrieval", "ndcg_at_10", ("test",), ("default",))
    return TaskData(about, {("test", "default"): cell}, {})


def _index_with_bm25s(corpus: Any) -> None:
    import bm25s

    from mteblite.pools.tokens import tokenize

    codes: dict[str, int] = {}
    tokens = [
        [codes.setdefault(term, len(codes)) for term in tokenize(text)]
        for batch in corpus.batches()
        for text in batch
    ]
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4, backend="numba")
    index.index((tokens, codes), show_progress=False)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
