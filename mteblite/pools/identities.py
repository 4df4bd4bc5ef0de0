"""Finding a pool's items and texts again in a task's data, by content and never by position.

Item ids are hashes of what an item is (or ids of the data set), so data in another order, or
downloaded elsewhere, hold the same items. What each type's identity is made of is what its
`draw_pool` takes; `tests/library/pools/test_identities.py` holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from mteblite.pools.corpus import Corpus
from mteblite.pools.items import Cell, content_ids, item_ids, plain
from mteblite.pools.metric_names import SUBQUERIES
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData

Frames = Mapping[str, Any]


def item_rows(data: TaskData) -> dict[str, tuple[Cell, int]]:
    """Return where each item of a loaded task is: item_id -> ((split, hf_subset), row).

    Rows count in the frame that holds the type's items: `test`, `pairs`, `documents` or
    `queries`; an item of several sub-queries is where its first one is.
    """
    identify = IDENTITIES[data.description.task_type]
    found: dict[str, tuple[Cell, int]] = {}
    for cell, frames in data.cells.items():
        rows, identities = identify(frames, data.description.main_metric)
        for row, item in zip(rows, item_ids(cell, identities), strict=True):
            found.setdefault(item, (cell, row))
    return found


def texts_of(data: TaskData, pool: Pool) -> Iterator[str]:
    """Yield texts of a loaded task that a pool of it may need.

    Args:
        data: the loaded task.
        pool: a pool of the task. Of a search task only its queries and documents are read, since
            a corpus may hold millions; its texts may be unknown (`text_hashes`).
    """
    for cell, frames in data.cells.items():
        if "corpus" in frames:
            yield from _searched(frames, pool, cell)
            continue
        for name, columns in TEXT_COLUMNS.items():
            frame = frames.get(name, pd.DataFrame())
            for column in set(columns).intersection(frame.columns):
                yield from _flat(frame[column].tolist())
        yield from frames.get("targets") or ()


TEXT_COLUMNS = {
    "train": ("text",),
    "test": ("text",),
    "pairs": ("text1", "text2", "sentence1", "sentence2"),
    "documents": ("text", "human_summaries", "machine_summaries"),
}
"""Columns of the frames of `TaskData.cells` that are encoded, or may be."""


def _flat(values: list[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        else:
            yield from value


def _searched(frames: Frames, pool: Pool, cell: Cell) -> Iterator[str]:
    queries, corpus = frames["queries"], frames["corpus"]
    asked = set(_of_cell(pool.frames["queries"], cell)["query_id"])
    chosen = queries["query_id"].astype(str).isin(asked)
    yield from queries.loc[chosen, "text"].tolist()
    yield from _documents(corpus, set(_of_cell(pool.frames["documents"], cell)["doc_id"]))


def _documents(corpus: Corpus, wanted: set[str]) -> list[str]:
    rows: dict[str, int] = {}
    for row, document in enumerate(corpus.ids):
        if document in wanted:
            rows.setdefault(document, row)
    return corpus.texts(list(rows.values()))


def _of_cell(frame: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    return frame[(frame["split"] == cell[0]) & (frame["hf_subset"] == cell[1])]


Identified = tuple[list[int], list[str]]
"""Rows, and the identity of the item in each."""


def _numbered(identities: list[str]) -> Identified:
    return list(range(len(identities))), identities


def _queries(frames: Frames, metric: str) -> Identified:
    names = [str(query) for query in frames["queries"]["query_id"]]
    if metric.startswith(SUBQUERIES):
        names = [name.rpartition("_")[0] for name in names]
    return _numbered(names)


def _labelled(frames: Frames, _: str) -> Identified:
    test = frames["test"]
    labels = [plain(label) for label in test["label"].tolist()]
    return _numbered(content_ids([test["text"].tolist(), labels]))


def _pairs(frames: Frames, _: str) -> Identified:
    pairs = frames["pairs"]
    gold: list[Any] = (
        [int(label) for label in pairs["label"]]
        if "label" in pairs.columns
        else [float(gold) for gold in pairs["gold"]]
    )
    return _numbered(content_ids([pairs["text1"].tolist(), pairs["text2"].tolist(), gold]))


def _clustered(frames: Frames, _: str) -> Identified:
    documents, sampled = frames["documents"], frames.get("sampled")
    rows = list(range(len(documents))) if sampled is None else [int(row) for row in sampled]
    chosen = documents.iloc[rows]
    labels = []
    for value in map(plain, chosen["labels"].tolist()):
        levels = value if isinstance(value, list) else [value]
        labels.append(json.dumps(levels, ensure_ascii=False))
    return rows, content_ids([chosen["text"].tolist(), labels])


def _summarized(frames: Frames, _: str) -> Identified:
    documents = frames["documents"]
    names = ("human_summaries", "machine_summaries", "relevance")
    lists = [[list(value) for value in documents[name]] for name in names]
    texts = documents["text"].tolist() if "text" in documents else [""] * len(documents)
    return _numbered(content_ids([texts, *lists]))


def _translated(frames: Frames, _: str) -> Identified:
    pairs, targets, gold = frames["pairs"], frames.get("targets"), frames.get("gold")
    sources = pairs["sentence1"].tolist()
    targets = pairs["sentence2"].tolist() if targets is None else list(targets)
    golden = targets if gold is None else [targets[int(j)] for _, j in gold][: len(sources)]
    return _numbered(content_ids([sources, golden]))


IDENTITIES: dict[str, Callable[[Frames, str], Identified]] = {
    "Retrieval": _queries,
    "Reranking": _queries,
    "Classification": _labelled,
    "PairClassification": _pairs,
    "STS": _pairs,
    "Clustering": _clustered,
    "Summarization": _summarized,
    "BitextMining": _translated,
}
