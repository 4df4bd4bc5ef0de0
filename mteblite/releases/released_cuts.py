"""Cutting a loaded mteb task's data to a few items, type by type, in mteb's own shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mteblite.pools.identities import item_rows
from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData


def cut_rows(task: Any, pool: Pool, data: TaskData) -> None:
    """Keep the rows of the selected items; train rows of a classification are another split."""
    for (split, subset), rows in _rows_by_cell(pool, data).items():
        if getattr(task, "train_split", None) == split:
            raise ValueError(
                f"{pool.meta['task']}: trains on its evaluation split {split!r}, so items cannot "
                "be taken out of it: score it with `mteblite score --release`"
            )
        holder = _holder(task, subset)
        holder[split] = holder[split].select(rows)


def cut_pairs(task: Any, pool: Pool, data: TaskData) -> None:
    """Keep the selected pairs; data sets of version 1 hold all pairs in one row of lists."""
    from datasets import Dataset

    for (split, subset), rows in _rows_by_cell(pool, data).items():
        holder = _holder(task, subset)
        table = holder[split]
        if len(table) == 1:
            columns = {k: [[v[row] for row in rows]] for k, v in table[0].items()}
            holder[split] = Dataset.from_dict(columns)
        else:
            holder[split] = table.select(rows)


def cut_documents(task: Any, pool: Pool, data: TaskData) -> None:
    """Keep the selected documents of a clustering, all of which mteb then embeds."""
    from datasets import Dataset

    legacy = bool(data.protocol["legacy"])
    for (split, subset), rows in _rows_by_cell(pool, data).items():
        holder = _holder(task, subset)
        if not legacy:
            holder[split] = holder[split].select(rows)
            continue
        sets = data.cells[split, subset]["documents"]["set"].to_numpy()
        place = {int(s): np.flatnonzero(sets == s)[0] for s in np.unique(sets)}
        kept = {s: [r - place[s] for r in rows if sets[r] == s] for s in place}
        holder[split] = Dataset.from_list(
            [
                {k: [v[int(r)] for r in kept[number]] for k, v in row.items()}
                for number, row in enumerate(holder[split])
                if kept[number]
            ]
        )
    if not legacy:
        task.max_fraction_of_documents_to_embed = task.max_document_to_embed = None


def cut_search(task: Any, pool: Pool, data: TaskData) -> None:
    """Keep the selected queries, their judgements and their candidates.

    Where queries have lists of their own, mteb reranks these; else all documents that the pool
    shares are the corpus, which mteb searches.
    """
    frames = pool.frames
    for split, subset in data.cells:
        cell = task.dataset[subset][split]
        queries = _of_cell(frames["queries"], (split, subset))
        documents = _of_cell(frames["documents"], (split, subset))
        asked = queries["query_id"].tolist()
        judged = frames["qrels"][frames["qrels"]["query_id"].isin(asked)]
        judged = judged[judged["item_id"].isin(queries["item_id"])]
        listed = frames["candidates"][frames["candidates"]["item_id"].isin(queries["item_id"])]
        task.dataset[subset][split] = {
            "corpus": _first_rows(cell["corpus"], set(documents["doc_id"])),
            "queries": _first_rows(cell["queries"], set(asked)),
            "relevant_docs": {
                query: dict(zip(part["doc_id"], map(int, part["relevance"]), strict=True))
                for query, part in judged.groupby("query_id")
            },
            "top_ranked": _candidates(asked, listed, documents) if len(listed) else None,
        }


def cut_bitext(task: Any, pool: Pool, data: TaskData) -> None:
    """Keep the selected sources, with their targets and the distractors as what mteb searches."""
    pairs = pool.frames["pairs"]
    texts = pool.texts["text"].to_numpy(object)
    dataset: dict[str, dict[str, Any]] = {}
    for split, subset in data.cells:
        items = _of_cell(pool.items, (split, subset))["item_id"]
        own = pairs[pairs["item_id"].isin(items)]
        others = _of_cell(pool.frames["distractors"], (split, subset))
        rows = dict(zip(own["target_index"].tolist(), own["target_row"].tolist(), strict=True))
        rows |= dict(
            zip(others["target_index"].tolist(), others["target_row"].tolist(), strict=True)
        )
        order = sorted(rows)  # as in the data: the first of equally near targets wins
        place = {index: position for position, index in enumerate(order)}
        gold = [place[index] for index in own["target_index"].tolist()]
        dataset.setdefault(subset, {})[split] = {
            "sentence1": texts[own["source_row"].to_numpy()].tolist(),
            "sentence2": texts[[rows[index] for index in order]].tolist(),
            "gold": list(enumerate(gold)),
        }
    task.dataset = dataset
    task.parallel_subsets = False  # each subset has sources and targets of its own now


Cut = Callable[[Any, Pool, TaskData], None]

CUTS: dict[str, Cut] = {
    "Retrieval": cut_search,
    "Reranking": cut_search,
    "Classification": cut_rows,
    "PairClassification": cut_pairs,
    "STS": cut_rows,
    "Clustering": cut_documents,
    "Summarization": cut_rows,
    "BitextMining": cut_bitext,
}


def _rows_by_cell(pool: Pool, data: TaskData) -> dict[Cell, list[int]]:
    """Rows of the pool's items per cell, in the data's order."""
    where = item_rows(data)
    rows: dict[Cell, list[int]] = {cell: [] for cell in data.cells}
    for item in pool.items["item_id"]:
        cell, row = where[item]
        rows[cell].append(row)
    return {cell: sorted(found) for cell, found in rows.items()}


def _holder(task: Any, subset: str) -> Any:
    """What holds the splits of a subset, found as mteb's `AbsTask.evaluate` finds it."""
    held = task.dataset
    return held if subset not in held and subset == "default" else held[subset]


def _of_cell(frame: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    return frame[(frame["split"] == cell[0]) & (frame["hf_subset"] == cell[1])]


def _first_rows(table: Any, wanted: set[str]) -> Any:
    """Rows with these ids; of an id that repeats the first."""
    rows: dict[str, int] = {}
    for row, name in enumerate(table["id"][:]):
        if str(name) in wanted:
            rows.setdefault(str(name), row)
    return table.select(sorted(rows.values()))


def _candidates(
    queries: Sequence[str], listed: pd.DataFrame, documents: pd.DataFrame
) -> dict[str, list[str]]:
    shared = documents.loc[documents["shared"].to_numpy(dtype=bool), "doc_id"].tolist()
    own = {query: part["doc_id"].tolist() for query, part in listed.groupby("query_id")}
    return {query: [*shared, *own.get(query, [])] for query in queries}
