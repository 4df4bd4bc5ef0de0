"""Texts that must work whatever they hold; texts that are none, whose error names the place."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.in_memory_tasks import search
from support.messy import scored, search_cell
from support.pool_tasks import CAPS, WHOLE, classification, retrieval, sentences, sts, task

from mteblite.pools.bm25 import best_documents
from mteblite.pools.corpus import Corpus
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.drawing import draw_pool

ARABIC = [
    "مُحَمَّدٌ رَسُولُ",
    "abc \u202bعربي\u202c def",
    "ال\u200bكتاب\u200f",
    "الكتاب",
    "ـــمحمدـــ",
    "שלום and مرحبا",
]


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
    from mteblite.tasks.task_cells import task_data
    from mteblite.tasks.task_lookup import description_of

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
    corpus = Corpus.from_columns([f"d{n}" for n in range(70)], texts)
    assert best_documents(corpus, ["same words"], 3) == [["d40", "d41", "d42"]]
    table = pd.DataFrame({"sentence1": ["a", "a", "b"], "sentence2": ["x", "x", "y"]})
    pool, _ = scored(task("BitextMining", [{"pairs": table}]), settings)
    assert len(pool.items) == 3


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
    corpus = Corpus.from_columns(range(6), ARABIC)
    books, names = best_documents(corpus, ["الكتاب", "محمد"], 6)
    assert set(books) == {"2", "3"}, "invisible marks do not part a word"
    assert set(names) == {"0", "4"}, "nor do vowel signs and kashida"
    decomposed = [unicodedata.normalize("NFD", text) for text in ("café", "Ångström")]
    assert best_documents(Corpus.from_columns("ab", decomposed), ["café"], 2) == [["a"]]


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
        ("Retrieval", "qrels", "relevance", None, "qrels: row 3, column 'relevance' is None"),
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
