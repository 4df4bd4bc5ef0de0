"""Messy data that must work, a test per kind of mess; broken data, whose error names the place."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from in_memory_tasks import search, tables
from in_memory_tasks import task as mteb_task
from pool_tasks import (
    CAPS,
    WHOLE,
    classification,
    clustering,
    pairs,
    retrieval,
    sentences,
    sts,
    task,
    vectors_of,
)

from mteblite_assets.outcomes.scoring import PoolScore, score_pool, set_statistic
from mteblite_assets.pools.bm25 import Index
from mteblite_assets.pools.corpus import Corpus
from mteblite_assets.pools.drawing import draw_pool
from mteblite_assets.pools.pool import Pool, PoolSettings
from mteblite_assets.pools.restriction import restrict
from mteblite_assets.pools.task_data import TaskData

ARABIC = [
    "مُحَمَّدٌ رَسُولُ",
    "abc \u202bعربي\u202c def",
    "ال\u200bكتاب\u200f",
    "الكتاب",
    "ـــمحمدـــ",
    "שלום and مرحبا",
]


def scored(
    data: TaskData,
    settings: PoolSettings = CAPS,
    vectors: Callable[[Pool], np.ndarray] = vectors_of,
) -> tuple[Pool, PoolScore]:
    """Draw and score; every outcome must be in range, and a restriction must agree."""
    pool = draw_pool(data, settings)
    score = score_pool(pool, vectors(pool))
    assert ((score.outcomes >= 0) & (score.outcomes <= 1)).all()
    assert pool.items["item_id"].is_unique
    part = restrict(pool, pool.items["item_id"].tolist()[:2])
    if score.observations is None:
        np.testing.assert_array_equal(score_pool(part, vectors(part)).outcomes, score.outcomes[:2])
    return pool, score


def search_cell(
    texts: Iterable[str],
    qrels: list[tuple[Any, Any, int]],
    queries: dict[Any, str],
    ids: list[Any] | None = None,
    lists: dict[Any, list[Any]] | None = None,
) -> dict[str, Any]:
    documents = list(texts)
    named = [f"d{n}" for n in range(len(documents))] if ids is None else ids
    ranked = None
    if lists is not None:
        ranked = pd.DataFrame(
            [(q, d) for q, found in lists.items() for d in found], columns=["query_id", "doc_id"]
        )
    return {
        "corpus": Corpus.from_columns(named, documents),
        "queries": pd.DataFrame({"query_id": list(queries), "text": list(queries.values())}),
        "qrels": pd.DataFrame(qrels, columns=["query_id", "doc_id", "relevance"]),
        "top_ranked": ranked,
    }


@pytest.fixture(params=[CAPS, WHOLE], ids=["caps", "whole"])
def settings(request: pytest.FixtureRequest) -> PoolSettings:
    found: PoolSettings = request.param
    return found


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


def test_empty_and_whitespace_texts(settings: PoolSettings) -> None:
    rng = np.random.default_rng(0)
    documents = ["", "   ", "\n\t", *sentences(rng, 60)]
    cell = search_cell(
        documents,
        [("q0", "d0", 1), ("q1", "d1", 1), ("q2", "d9", 1)],
        {"q0": "", "q1": " ", "q2": documents[9]},
    )
    pool, _ = scored(task("Retrieval", [cell]), settings)
    assert {"", "   "} <= set(pool.texts["text"])
    cell = sts(rng)
    cell["pairs"].loc[:2, "text1"] = ["", "   ", "\n"]
    scored(task("STS", [cell]), settings)
    cell = classification(rng)
    cell["test"].loc[:1, "text"] = ["", " "]
    cell["train"].loc[:1, "text"] = ["", " "]
    scored(task("Classification", [cell]), settings)


def test_a_title_without_text_and_the_reverse() -> None:
    from mteblite_resources.task_cells import task_data
    from mteblite_resources.task_lookup import description_of

    made = search("ndcg_at_10", lists=False)
    rows = [
        {"id": "d0", "title": "only a title", "text": ""},
        {"id": "d1", "title": "", "text": " only a text "},
        {"id": "d2", "title": None, "text": "a null title"},
        {"id": "d3", "title": "both", "text": "here"},
    ]
    from datasets import Dataset

    for subset in made.dataset.values():
        subset["test"]["corpus"] = Dataset.from_list(rows)
    data = task_data(made, description_of(made, source="mteb"))
    corpus = data.cells["test", "one"]["corpus"]
    assert corpus.texts(range(4)) == ["only a title", "only a text", "a null title", "both here"]
    assert draw_pool(data, CAPS).texts["text"].str.contains("only a title").any()


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


def test_duplicate_texts_under_different_ids(settings: PoolSettings) -> None:
    texts = [*sentences(np.random.default_rng(0), 40), *["the same words"] * 30]
    cell = search_cell(
        texts, [("q0", "d55", 1), ("q1", "d1", 1)], {"q0": "the same", "q1": texts[1]}
    )
    pool, _ = scored(task("Retrieval", [cell]), settings)
    documents = pool.frames["documents"].set_index("doc_id")["document_row"]
    copies = documents[[d for d in documents.index if int(d[1:]) >= 40]]
    assert copies.nunique() == 1, "one text is stored and encoded once"
    assert len(copies) >= 5
    index = Index([texts])
    names = [f"d{n}" for n in range(70)]
    assert index.top("same words", 3, names) == [40, 41, 42], "ties go to the smallest id"
    table = pd.DataFrame({"sentence1": ["a", "a", "b"], "sentence2": ["x", "x", "y"]})
    pool, _ = scored(task("BitextMining", [{"pairs": table}]), settings)
    assert len(pool.items) == 3


def test_gold_scores_all_equal(settings: PoolSettings) -> None:
    cell = sts(np.random.default_rng(0))
    cell["pairs"] = cell["pairs"].assign(gold=2.5)
    pool, score = scored(task("STS", [cell]), settings)
    assert np.isnan(score.pool_score), "no order, no correlation"
    assert np.isnan(set_statistic("STS", score.observations[:8], pool.items[:8], np.full(8, 1 / 8)))
    assert set(pool.items["stratum"]) == {"bin0"}


def test_a_label_with_one_example(settings: PoolSettings) -> None:
    cell = classification(np.random.default_rng(0))
    cell["test"].loc[0, "label"] = "only here"
    pool, _ = scored(task("Classification", [cell]), settings)
    assert (pool.items["stratum"] == "only here").sum() == 1
    cell = clustering(np.random.default_rng(0))
    labels = cell["documents"]["labels"].tolist()
    labels[7] = ["top0", "only here"]
    cell["documents"] = cell["documents"].assign(labels=labels)
    pool, _ = scored(task("Clustering", [cell]), settings)
    assert (pool.items["stratum"] == "top0 > only here").sum() == 1
    cell = pairs(np.random.default_rng(0))
    cell["pairs"]["label"] = [1] + [0] * 59
    pool, score = scored(task("PairClassification", [cell]), settings)
    assert pool.items["gold"].sum() == 1
    assert 0 < score.pool_score <= 1


@pytest.mark.parametrize("kind", ["Retrieval", "STS", "PairClassification", "Clustering"])
def test_fewer_items_than_asked_for(kind: str) -> None:
    data = task(kind)
    many = PoolSettings(10_000, 30, 100, 10_000)
    pool, score = scored(data, many)
    assert len(pool.items) == pool.meta["n_available"]
    whole = draw_pool(data, WHOLE)
    assert pool.items["item_id"].tolist() == whole.items["item_id"].tolist()
    assert score.pool_score == pytest.approx(score_pool(whole, vectors_of(whole)).pool_score)


def test_texts_of_100_000_characters(settings: PoolSettings) -> None:
    long = "".join(np.random.default_rng(0).choice(list("abc de"), 100_000))
    cell = sts(np.random.default_rng(0))
    cell["pairs"].loc[0, "text1"] = long
    pool, _ = scored(task("STS", [cell]), WHOLE)
    assert long in set(pool.texts["text"])
    texts = [long, long[::-1], *sentences(np.random.default_rng(0), 40)]
    cell = search_cell(texts, [("q0", "d0", 1)], {"q0": long})
    _, score = scored(task("Retrieval", [cell]), settings)
    assert score.pool_score == 1


def test_arabic_with_marks_mixed_direction_and_invisible_characters(
    settings: PoolSettings, tmp_path: Any
) -> None:
    texts = [*ARABIC, *sentences(np.random.default_rng(0), 40)]
    cell = search_cell(
        texts, [(f"q{n}", f"d{n}", 1) for n in range(6)], {f"q{n}": texts[n] for n in range(6)}
    )
    pool, score = scored(task("Retrieval", [cell]), settings)
    assert set(ARABIC) <= set(pool.texts["text"]), "texts reach the model as they are"
    assert score.pool_score == 1
    pool.save(tmp_path / "pool")
    assert Pool.load(tmp_path / "pool").texts.equals(pool.texts)
    index = Index([ARABIC])
    names = [f"d{n}" for n in range(6)]
    assert set(index.top("الكتاب", 6, names)) == {2, 3}, "invisible marks do not part a word"
    assert set(index.top("محمد", 6, names)) == {0, 4}, "nor do vowel signs and kashida"
    decomposed = [unicodedata.normalize("NFD", text) for text in ("café", "Ångström")]
    assert Index([decomposed]).top("café", 2, ["a", "b"]) == [0]


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


def test_hierarchical_labels(settings: PoolSettings) -> None:
    cell = clustering(np.random.default_rng(0))
    labels = cell["documents"]["labels"].tolist()
    labels[3], labels[4], labels[5] = ["top0"], ["top0 > odd", "low9"], ["top0 > odd", "low9"]
    cell["documents"] = cell["documents"].assign(labels=labels)
    pool, score = scored(task("Clustering", [cell]), WHOLE)
    strata = pool.items["stratum"]
    assert (strata == "top0").sum() == 1, "a missing level stays missing"
    assert (strata == "top0>odd > low9").sum() == 2, "the separator in a label is no level"
    assert set(np.unique(score.outcomes)) <= {0, 0.5, 1}, "a hit per level"
    bare = clustering(np.random.default_rng(0))
    bare["documents"] = bare["documents"].assign(labels=[n % 3 for n in range(60)])
    pool, _ = scored(task("Clustering", [bare]), settings)
    assert set(pool.items["stratum"]) == {"0", "1", "2"}, "a bare label is one level"


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


def test_a_data_set_whose_other_subsets_are_missing() -> None:
    from mteblite_resources.task_cells import task_data
    from mteblite_resources.task_lookup import description_of

    def columns(rng: np.random.Generator) -> dict[str, dict[str, list[Any]]]:
        first, second = sentences(rng, 20), sentences(rng, 20)
        return {"test": {"sentence1": first, "sentence2": second, "score": list(range(20))}}

    held = {"one": tables(columns)["one"]}
    made = mteb_task("STS", "AbsTaskSTS", "cosine_spearman", ["one", "two", "three"], held)
    made = made.filter_languages(None, hf_subsets=["one"])
    data = task_data(made, description_of(made, source="mteb"))
    pool, score = scored(data)
    assert set(pool.items["hf_subset"]) == {"one"}
    assert np.isfinite(score.pool_score)


def without(kind: str, frame: str, column: str, value: Any) -> TaskData:
    data = task(kind)
    cell = data.cells["test", "s1"]
    table = cell[frame].astype({column: object})
    table.at[3, column] = value
    cell[frame] = table
    return data


@pytest.mark.parametrize(
    ("kind", "frame", "column", "value", "message"),
    [
        ("STS", "pairs", "text2", None, "'s1'.*row 3, column 'text2' is None"),
        ("STS", "pairs", "gold", np.nan, "row 3, column 'gold' is nan"),
        ("PairClassification", "pairs", "text1", np.nan, "row 3, column 'text1' is nan"),
        ("PairClassification", "pairs", "label", 2, "row 3, column 'label' is 2"),
        ("BitextMining", "pairs", "sentence1", np.nan, "row 3, column 'sentence1'"),
        ("Classification", "test", "text", None, "test rows: row 3, column 'text'"),
        ("Classification", "train", "text", None, "train rows: row 3, column 'text'"),
        ("Classification", "test", "label", None, "row 3, column 'label' is None"),
        ("Clustering", "documents", "text", None, "row 3, column 'text'"),
        ("Clustering", "documents", "labels", [None], "row 3, column 'labels'"),
        ("Summarization", "documents", "relevance", [1.0], "row 3 has 5 machine"),
        ("Summarization", "documents", "human_summaries", [], "row 3, column 'human_s"),
        ("Summarization", "documents", "machine_summaries", [None], "row 3, column 'machine_s"),
        ("Retrieval", "queries", "text", None, "queries: row 3, column 'text'"),
    ],
)
def test_nan_or_null_is_named_by_row_and_column(
    kind: str, frame: str, column: str, value: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        draw_pool(without(kind, frame, column, value), CAPS)
    assert "Sampled" in str(caught.value)


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_document_without_text_is_named_by_row_and_id(nothing: Any) -> None:
    cell = retrieval(np.random.default_rng(0))
    texts: list[Any] = cell["corpus"].texts(range(90))
    texts[4] = nothing
    cell["corpus"] = Corpus.from_columns(cell["corpus"].ids, texts)
    with pytest.raises(ValueError, match=r"row 4 \(document id 'd4'\) is (None|nan)"):
        draw_pool(task("Retrieval", [cell]), CAPS)
