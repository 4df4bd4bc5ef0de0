"""Search data that must work: ids, judgements and candidate lists as they come."""

from __future__ import annotations

import numpy as np
import pytest
from support.messy import scored, search_cell
from support.pool_tasks import CAPS, sentences, task

from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings


def test_repeated_document_ids(settings: PoolSettings) -> None:
    rng = np.random.default_rng(0)
    texts = sentences(rng, 90)
    ids = [f"d{n % 80}" for n in range(90)]
    qrels = [(f"q{n}", f"d{n}", 1) for n in range(20)]
    cell = search_cell(texts, qrels, {f"q{n}": texts[n] for n in range(20)}, ids)
    pool, score = scored(task("Retrieval", [cell]), settings)
    documents = pool.frames["documents"]
    assert documents["doc_id"].is_unique
    first = documents.set_index("doc_id").loc["d3", "document_row"]
    assert pool.texts["text"][first] == texts[3], "the first row of an id is the document"
    assert score.pool_score == pytest.approx(1), "each query is its document"


def test_queries_whose_relevant_documents_are_not_in_the_corpus(settings: PoolSettings) -> None:
    texts = sentences(np.random.default_rng(0), 60)
    qrels = [("q0", "elsewhere", 1), ("q1", "elsewhere", 1), ("q1", "d1", 1), ("q2", "d2", 1)]
    cell = search_cell(texts, qrels, {f"q{n}": texts[n] for n in range(3)})
    pool, score = scored(task("Retrieval", [cell]), settings)
    assert pool.meta["n_missing_relevant"] == 2
    assert score.outcomes[0] == 0, "what nobody can find counts as not found"
    assert 0 < score.outcomes[1] < 1
    assert score.outcomes[2] == 1


def test_relevance_of_zero_or_below(settings: PoolSettings) -> None:
    texts = sentences(np.random.default_rng(0), 60)
    qrels = [("q0", "d0", 1), ("q0", "d1", -1), ("q1", "d1", 0), ("q2", "d2", -2), ("q3", "d3", 2)]
    cell = search_cell(texts, qrels, {f"q{n}": texts[n] for n in range(4)})
    pool, score = scored(task("Retrieval", [cell]), settings)
    names = pool.items["item_id"].str.rpartition("/")[2].tolist()
    if settings is CAPS:
        assert names == ["q0", "q3"], "queries that nobody can answer tell nothing"
    else:
        assert names == ["q0", "q1", "q2", "q3"]
        assert score.outcomes[1] == score.outcomes[2] == 0
    assert score.outcomes[0] == score.outcomes[-1] == 1


def test_ids_that_are_integers(settings: PoolSettings) -> None:
    texts = sentences(np.random.default_rng(0), 60)
    queries = {n: texts[n] for n in range(20)}
    as_numbers = search_cell(texts, [(n, n, 1) for n in range(20)], queries, list(range(60)))
    as_texts = search_cell(
        texts,
        [(str(n), str(n), 1) for n in range(20)],
        {str(n): text for n, text in queries.items()},
        [str(n) for n in range(60)],
    )
    first, score = scored(task("Retrieval", [as_numbers]), settings)
    second, _ = scored(task("Retrieval", [as_texts]), settings)
    assert first.pool_hash() == second.pool_hash()
    assert score.pool_score == pytest.approx(1)


def test_ignore_identical_ids(settings: PoolSettings) -> None:
    texts = sentences(np.random.default_rng(0), 60)
    # each query is a document of the corpus; the relevant one repeats half of its words
    texts[30:50] = [" ".join(text.split()[:6]) for text in texts[:20]]
    queries = {f"d{n}": texts[n] for n in range(20)}
    cell = search_cell(texts, [(f"d{n}", f"d{n + 30}", 1) for n in range(20)], queries)

    def shared_words(pool: Pool) -> np.ndarray:
        words = sorted(
            {word for text in pool.texts["text"] for word in text.split()}
            | {f"word{n}" for n in range(80)}
        )
        rows = [[text.split().count(word) for word in words] for text in pool.texts["text"]]
        return np.array(rows, dtype=np.float32)

    data = task("Retrieval", [cell], ignore_identical_ids=True)
    _, ignoring = scored(data, settings, shared_words)
    _, counting = scored(task("Retrieval", [cell]), settings, shared_words)
    assert (ignoring.outcomes >= counting.outcomes).all()
    assert ignoring.pool_score > counting.pool_score + 0.2, "the query itself takes no place"


def test_sub_query_reranking() -> None:
    texts = sentences(np.random.default_rng(0), 30)
    # as in MindSmall: an impression's queries end in _<n>, and a name may hold a _ itself
    names = ["u1_10_0", "u1_10_1", "u1_11_0"]
    qrels = [(q, f"d{n}", int(n == 0)) for q in names[:2] for n in range(4)]
    qrels += [("u1_11_0", f"d{n}", int(n == 5)) for n in range(4, 8)]
    lists = {q: [f"d{n}" for n in range(4)] for q in names[:2]}
    lists["u1_11_0"] = [f"d{n}" for n in range(4, 8)]
    queries = {"u1_10_0": texts[20], "u1_10_1": texts[0], "u1_11_0": texts[5]}
    cell = search_cell(texts, qrels, queries, lists=lists)
    data = task("Reranking", [cell])
    about = data.description.__class__(
        **{**vars(data.description), "main_metric": "max_over_subqueries_map_at_1000"}
    )
    pool, score = scored(TaskData(about, data.cells, data.protocol))
    assert pool.items["item_id"].tolist() == ["s0/test/u1_10", "s0/test/u1_11"]
    assert pool.frames["queries"].groupby("item_id").size().tolist() == [2, 1]
    assert score.outcomes.tolist() == [1, 1], "the better sub-query's score counts"


def test_candidates_that_are_missing_from_the_corpus() -> None:
    texts = sentences(np.random.default_rng(0), 30)
    lists = {"q0": ["d0", "gone", "d1"], "q1": ["gone"]}
    cell = search_cell(
        texts, [("q0", "d0", 1), ("q1", "gone", 1)], {"q0": texts[0], "q1": "x"}, lists=lists
    )
    pool, score = scored(task("Reranking", [cell]))
    assert pool.meta["n_missing_candidates"] == 2
    assert pool.meta["n_missing_relevant"] == 1
    assert score.outcomes.tolist() == [1, 0]
