"""BM25 against the bm25s package, and the tokenizer on scripts other than Latin."""

from __future__ import annotations

import bm25s
import numpy as np
import pytest

from mteblite_assets.pools.bm25 import K1, B, Index, tokenize


def test_scores_are_those_of_bm25s() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(200)]
    shares = 1 / np.arange(1, 201)
    texts = [
        " ".join(rng.choice(words, int(n), p=shares / shares.sum()))
        for n in rng.integers(0, 60, 300)
    ]
    reference = bm25s.BM25(method="lucene", k1=K1, b=B)
    reference.index([tokenize(text) for text in texts], show_progress=False)
    index = Index([texts[:100], texts[100:101], texts[101:]])
    for query in ("w0", "w3 w50 w3", "w1 w199 unknown", "w7 w8 w9 w10 w11"):
        known = [t for t in tokenize(query) if t in reference.vocab_dict]
        np.testing.assert_allclose(index.scores(query), reference.get_scores(known), rtol=1e-5)


def test_skipping_common_terms_finds_the_same_documents() -> None:
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(400)]
    shares = 1 / np.arange(1, 401)
    texts = [" ".join(rng.choice(words, 30, p=shares / shares.sum())) for _ in range(3000)]
    ids = [f"d{row:05d}" for row in range(3000)]
    index = Index([texts])
    for _ in range(40):
        query = " ".join(rng.choice(words, 6, p=shares / shares.sum()))
        scores = index.scores(query).astype(float)
        best = index.top(query, 10, ids)
        np.testing.assert_allclose(scores[best], np.sort(scores)[::-1][:10], rtol=1e-5)


def test_the_best_come_first_and_ties_go_to_the_smaller_id() -> None:
    index = Index([["apple pie", "apple", "pear", "apple", ""]])
    ids = ["d", "c", "b", "a", "e"]
    assert index.top("apple", 10, ids) == [3, 1, 0]
    assert index.top("apple", 1, ids) == [3]
    assert index.top("plum", 10, ids) == []
    assert index.top("", 10, ids) == []


def test_an_empty_corpus_has_no_best() -> None:
    assert Index([]).top("apple", 5, []) == []
    assert Index([["", " "]]).top("apple", 5, ["a", "b"]) == []


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Don't STOP, e-mail_2!", ["don", "t", "stop", "e", "mail", "2"]),
        ("مُحَمَّـــدٌ", ["محمد"]),
        ("ال\u200bكتاب", ["الكتاب"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("東京都 AI", ["東", "京", "都", "ai"]),
        ("Straße ﬁne", ["strasse", "fine"]),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert tokenize(text) == terms
