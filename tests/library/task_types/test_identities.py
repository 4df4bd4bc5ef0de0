"""Items and texts of a pool are found again in the task's data, whatever the order of its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.pool_tasks import CAPS, TYPES, WHOLE, task, vectors_of

from mteblite.pools.corpus import Corpus
from mteblite.pools.restriction import restrict
from mteblite.pools.task_data import TaskData
from mteblite.pools.text_hashes import (
    HASH,
    hashes_by_item,
    text_hash,
    with_texts,
    without_texts,
)
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.identities import item_rows, texts_of
from mteblite.task_types.scoring import score_pool


def turned(data: TaskData) -> TaskData:
    """The same data with their rows in reverse order; train rows and gold stay where they are."""
    cells = {}
    for cell, frames in data.cells.items():
        cells[cell] = dict(frames)
        for name in ("test", "pairs", "documents", "queries", "qrels"):
            if isinstance(frames.get(name), pd.DataFrame):
                cells[cell][name] = frames[name].iloc[::-1].reset_index(drop=True)
        if "corpus" in frames:
            corpus = frames["corpus"]
            rows = list(range(len(corpus)))[::-1]
            ids = [corpus.ids[r] for r in rows]
            cells[cell]["corpus"] = Corpus.from_columns(ids, corpus.texts(rows))
    return replace(data, cells=cells)


@pytest.mark.parametrize("kind", TYPES)
def test_the_items_of_the_whole_pool_are_the_items_of_the_data(kind: str) -> None:
    data = task(kind)
    where = item_rows(data)
    assert set(where) == set(draw_pool(data, WHOLE).items["item_id"])
    assert {cell for cell, _ in where.values()} == set(data.cells)


@pytest.mark.parametrize("kind", TYPES)
def test_a_cut_pool_is_rebuilt_from_hashes_and_reordered_data(kind: str) -> None:
    data = task(kind)
    pool = draw_pool(data, CAPS)
    cut = restrict(pool, pool.items["item_id"].tolist()[::3])
    hidden = without_texts(cut)
    assert list(hidden.texts.columns) == [HASH, "prompt_type"]
    rebuilt = with_texts(hidden, texts_of(turned(data), hidden), "1")
    pd.testing.assert_frame_equal(rebuilt.texts, cut.texts)
    assert rebuilt.pool_hash() == cut.pool_hash()
    vectors = vectors_of(rebuilt)
    found = score_pool(rebuilt, vectors)
    np.testing.assert_array_equal(found.outcomes, score_pool(cut, vectors).outcomes)


@pytest.mark.parametrize("kind", TYPES)
def test_every_item_has_hashes_of_its_own_texts(kind: str) -> None:
    pool = draw_pool(task(kind), CAPS)
    hashes = hashes_by_item(without_texts(pool))
    known = {text_hash(text) for text in pool.texts["text"]}
    assert set(hashes) == set(pool.items["item_id"])
    assert all(own and set(own) <= known for own in hashes.values())


@pytest.mark.parametrize("kind", TYPES)
def test_a_lost_text_is_named_with_its_item_and_the_revision(kind: str) -> None:
    data = task(kind)
    pool = draw_pool(data, CAPS)
    hidden = without_texts(pool)
    own = {h for found in hashes_by_item(hidden).values() for h in found}
    lost = next(t for t in pool.texts["text"] if text_hash(t) in own)
    left = [t for t in texts_of(data, hidden) if t != lost]
    owners = [i for i, h in hashes_by_item(hidden).items() if text_hash(lost) in h]
    with pytest.raises(
        ValueError, match=r"Sampled: the text of item .* at revision 'abc'"
    ) as error:
        with_texts(hidden, left, "abc")
    assert any(repr(item) in str(error.value) for item in owners)


def test_lost_texts_that_items_share_are_named() -> None:
    data = task("Retrieval")
    hidden = without_texts(draw_pool(data, CAPS))
    documents = hidden.frames["documents"]
    shared = documents[documents["shared"]].iloc[0]
    lost = hidden.texts[HASH][shared["document_row"]]
    left = [t for t in texts_of(data, hidden) if text_hash(t) != lost]
    with pytest.raises(ValueError, match=f"the text of document '{shared['doc_id']}'"):
        with_texts(hidden, left, "1")
    data = task("Classification")
    hidden = without_texts(draw_pool(data, CAPS))
    left = [t for frames in data.cells.values() for t in frames["test"]["text"]]
    with pytest.raises(ValueError, match="of the train rows that its items share"):
        with_texts(hidden, left, "1")


def test_ids_that_are_texts_are_not_given_away() -> None:
    data = task("Retrieval")
    long = "a question long enough that its words are somebody's own text"
    cells = {
        cell: {
            **frames,
            "queries": frames["queries"].replace("q0", long).assign(
                text=frames["queries"]["text"].where(frames["queries"]["query_id"] != "q0", long)
            ),
            "qrels": frames["qrels"].replace("q0", long),
        }
        for cell, frames in data.cells.items()
    }  # fmt: skip
    pool = draw_pool(replace(data, cells=cells), WHOLE)
    with pytest.raises(ValueError, match=r"holds a text of the data set .* must not be given away"):
        without_texts(pool)


def test_hashes_of_odd_texts() -> None:
    assert text_hash("a") != text_hash("a ")
    assert len(text_hash("\ud800")) == 32  # a lone surrogate has no UTF-8 bytes
