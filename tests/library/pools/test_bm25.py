"""BM25 against the bm25s package, and the tokenizer on scripts other than Latin."""

from __future__ import annotations

import bm25s
import numpy as np
import pytest

from mteblite.pools.bm25 import K1, B, Index
from mteblite.pools.tokens import tokenize


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


def zipf_corpus(number: int, seed: int = 2) -> tuple[list[str], list[str], list[str]]:
    """Texts with many equal scores among them, their ids, and queries."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{i}" for i in range(3000)])
    shares = 1 / np.arange(1, 3001)
    drawn = rng.choice(words, (number, 12), p=shares / shares.sum())
    texts = [" ".join(row) for row in drawn]
    texts[::7] = texts[: len(texts[::7])]
    queries = [" ".join(rng.choice(words, 6, p=shares / shares.sum())) for _ in range(100)]
    ids = [f"d{i}" for i in rng.permutation(number)]
    return texts, ids, [*queries, "", "unknown", "w0", "w0 w0 w1 w1 w2999"]


def test_compiled_search_finds_the_same_documents_bit_for_bit() -> None:
    pytest.importorskip("numba", reason="numba is not installed: plain search only")
    from mteblite.pools.bm25_compiled import search_all
    from mteblite.pools.bm25_search import search

    texts, _, queries = zipf_corpus(5000)
    index = Index([texts])
    for number in (1, 30, 6000):
        parsed = [index._parse(query) for query in queries]
        compiled = search_all(index.postings, parsed, number)
        for query, (rows, scores) in zip(parsed, compiled, strict=True):
            plain_rows, plain_scores = search(index.postings, query, number)
            order = np.argsort(rows)
            assert rows[order].tolist() == plain_rows.tolist()
            assert scores[order].tobytes() == plain_scores.tobytes()
    assert search_all(index.postings, [], 30) == []


def test_the_order_of_rows_and_the_number_of_threads_do_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mteblite.pools.bm25.COMPILED_FROM", 1)
    texts, ids, queries = zipf_corpus(4000)
    queries = queries * 2
    order = np.random.default_rng(3).permutation(len(texts))
    mixed = Index([[texts[row] for row in order]])
    mixed_ids = [ids[row] for row in order]
    straight = Index([texts]).top_of_all(queries, 20, ids, threads=1)
    found = mixed.top_of_all(queries, 20, mixed_ids, threads=3)
    assert [[ids[row] for row in rows] for rows in straight] == [
        [mixed_ids[row] for row in rows] for rows in found
    ]
    assert any(len(rows) == 20 for rows in straight)


def test_an_index_of_the_terms_asked_for_scores_alike() -> None:
    texts, ids, queries = zipf_corpus(3000)
    terms = {term for query in queries for term in tokenize(query)}
    whole, lean = Index([texts]), Index([texts[:1000], texts[1000:]], terms=terms)
    assert len(lean.postings.documents) < len(whole.postings.documents)
    assert lean.top_of_all(queries, 10, ids) == whole.top_of_all(queries, 10, ids)


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
        ("A1\x00b\tC_d\x7fe", ["a1", "b", "c", "d", "e"]),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert tokenize(text) == terms


def test_ascii_needs_no_way_of_its_own() -> None:
    every = "".join(map(chr, range(128)))
    assert tokenize(every + "é") == [*tokenize(every), "é"]
    assert tokenize("Don't STOP é") == [*tokenize("Don't STOP"), "é"]
