"""BM25 against bm25s's own index, its order, and the tokenizer on scripts other than Latin."""

from __future__ import annotations

import math
from collections import Counter

import bm25s
import numpy as np
import pytest

from mteblite.pools import bm25
from mteblite.pools.bm25 import K1, B, best_documents
from mteblite.pools.corpus import Corpus
from mteblite.pools.tokens import tokenize


@pytest.fixture(params=[1, 10**12], ids=["numba", "numpy"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "COMPILED_FROM", request.param)


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
    return texts, ids, ["", *queries, "unknown", "w0", "w0 w0 w1 w1 w2999"]


def test_the_best_are_those_of_an_index_of_bm25s(backend: None) -> None:
    texts, _, queries = zipf_corpus(3000)
    reference = bm25s.BM25(method="lucene", k1=K1, b=B)
    reference.index([tokenize(text) for text in texts], show_progress=False)
    found = best_documents(Corpus.from_columns(range(3000), texts), queries, 30)
    for query, names in zip(queries, found, strict=True):
        known = [term for term in tokenize(query) if term in reference.vocab_dict]
        scores = reference.get_scores(known) if known else np.zeros(3000)
        best = np.sort(scores[scores > 0])[::-1][:30]
        np.testing.assert_allclose(scores[[int(name) for name in names]], best, rtol=1e-5)


@pytest.mark.parametrize("number", [1, 30, 1500])
def test_equal_scores_go_to_the_smaller_id(backend: None, number: int) -> None:
    texts, ids, queries = zipf_corpus(1500)
    counts = [Counter(tokenize(text)) for text in texts]
    frequencies = Counter(term for count in counts for term in count)
    mean = sum(count.total() for count in counts) / len(texts)

    def score(query: str, count: Counter[str]) -> float:
        parts = [
            times
            * math.log(1 + (len(texts) - frequencies[t] + 0.5) / (frequencies[t] + 0.5))
            * (count[t] / (count[t] + K1 * (1 - B + B * count.total() / mean)))
            for t, times in Counter(tokenize(query)).items()
            if count[t]
        ]
        return round(math.fsum(parts), 9)

    found = best_documents(Corpus.from_columns(ids, texts), queries, number)
    for query, names in zip(queries, found, strict=True):
        scored = [(-score(query, c), name) for c, name in zip(counts, ids, strict=True)]
        assert names == [name for value, name in sorted(scored) if value][:number]


def test_the_order_of_rows_does_not_matter(backend: None) -> None:
    texts, ids, queries = zipf_corpus(10_000)
    order = np.random.default_rng(3).permutation(len(texts))
    straight = Corpus.from_columns(ids, texts)
    mixed = Corpus.from_columns([ids[row] for row in order], [texts[row] for row in order])
    found = best_documents(straight, queries, 20)
    assert found == best_documents(mixed, queries, 20)
    assert any(len(names) == 20 for names in found)


def test_scores_do_not_depend_on_the_other_queries() -> None:
    texts, ids, queries = zipf_corpus(3000)
    corpus = Corpus.from_columns(ids, texts)
    together = best_documents(corpus, queries, 10)
    assert together == [best_documents(corpus, [query], 10)[0] for query in queries]


def test_the_best_come_first(backend: None) -> None:
    corpus = Corpus.from_columns("dcbae", ["apple pie", "apple", "pear", "apple", ""])
    queries = ["apple", "plum", "", "pie apple"]
    assert best_documents(corpus, queries, 10) == [["a", "c", "d"], [], [], ["d", "a", "c"]]
    assert best_documents(corpus, queries, 1) == [["a"], [], [], ["d"]]
    assert best_documents(corpus, [], 1) == []


def test_the_compiled_search_of_bm25s_is_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    from bm25s.numba.retrieve_utils import _retrieve_internal_jitted_serial as compiled

    monkeypatch.setattr(bm25, "COMPILED_FROM", 1)
    best_documents(Corpus.from_columns("a", ["apple"]), ["apple"], 1)
    assert compiled.stats.cache_path is not None


def test_an_empty_corpus_has_no_best() -> None:
    assert best_documents(Corpus.from_columns([], []), ["apple", ""], 5) == [[], []]
    assert best_documents(Corpus.from_columns("ab", ["", " "]), ["apple"], 5) == [[]]


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
