"""A corpus is read in order and in slices, and BM25 keeps no texts of it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mteblite.pools.bm25 import best_documents
from mteblite.pools.corpus import BATCH, Corpus


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


def test_a_batch_is_let_go_before_the_next_but_one_is_read() -> None:
    seen: list[weakref.ref[Batch]] = []
    alive = []

    def fetch(rows: Sequence[int]) -> Batch:
        alive.append(sum(found() is not None for found in seen))
        batch = Batch(f"word w{row % 5000}" for row in rows)
        seen.append(weakref.ref(batch))
        return batch

    corpus = Corpus([str(row) for row in range(5 * BATCH)], fetch)
    assert best_documents(corpus, ["w0"], 3) == [["0", "10000", "15000"]]
    assert len(alive) == 5
    assert max(alive) == 1
