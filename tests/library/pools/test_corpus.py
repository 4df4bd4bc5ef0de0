"""A corpus is read in order and in slices, and an index of it is bounded by its postings."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from mteblite.pools.bm25 import Index
from mteblite.pools.corpus import Corpus


class Table:
    """A table that notes how it was read, as `datasets.Dataset` is read."""

    def __init__(self, number: int) -> None:
        self.ids = list(range(number))
        self.read: list[Any] = []

    def __getitem__(self, key: Any) -> Any:
        if key == "id":
            return self.ids
        self.read.append(key)
        rows = self.ids[key] if isinstance(key, slice) else key
        return {"text": [f"text {row}" for row in rows]}


def test_batches_are_consecutive_slices() -> None:
    table = Table(25)
    corpus = Corpus.from_dataset(table, "id", lambda rows: rows["text"])
    assert corpus.ids == [str(n) for n in range(25)]
    assert [text for batch in corpus.batches(10) for text in batch] == [
        f"text {n}" for n in range(25)
    ]
    assert table.read == [slice(0, 10), slice(10, 20), slice(20, 25)]


def test_chosen_rows_come_in_the_order_asked_for() -> None:
    table = Table(25)
    corpus = Corpus.from_dataset(table, "id", lambda rows: rows["text"])
    assert corpus.texts(np.array([7, 3, 7])) == ["text 7", "text 3", "text 7"]
    assert corpus.texts([]) == []
    assert table.read == [[7, 3, 7]]


def test_ids_and_texts_must_agree() -> None:
    with pytest.raises(ValueError, match="2 ids but 1 texts"):
        Corpus.from_columns([1, 2], ["a"])


class Batch(list[str]):
    """Texts whose end of life can be seen."""


def test_an_index_holds_postings_not_texts() -> None:
    seen: list[weakref.ref[Batch]] = []
    alive = []

    def batches() -> Iterator[Sequence[str]]:
        for number in range(20):
            words = np.random.default_rng(number).integers(0, 5000, (200, 60))
            batch = Batch(" ".join(f"w{word}" for word in row) for row in words)
            seen.append(weakref.ref(batch))
            yield batch
            del batch
            alive.append(sum(found() is not None for found in seen))

    index = Index(batches(), terms={f"w{n}" for n in range(5000)})
    assert max(alive) == 1, "a batch is let go before the next one is read"
    postings = index.postings
    assert len(postings.documents) > 235_000
    assert postings.documents.nbytes + postings.scores.nbytes == 8 * len(postings.documents)
