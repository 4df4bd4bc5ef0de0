"""Data of a BitextMining task from mteb's loaded task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.restriction import of_cell
from mteblite.pools.task_data import TaskData
from mteblite.task_types.columns import TaskCell, cell_rows, require_rows, texts_of


def read_cell(task: Any, cell: TaskCell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return `pairs` [sentence1, sentence2], row by row.

    Where matches are not row by row (BUCC), also `targets`, all sentences to search, and `gold`
    [(i, j)]: row j of `targets` matches sentence i.
    """
    if protocol["parallel_subsets"]:  # one table, a column per language: NTREX, Flores, IN22
        first, second = cell.subset.split("-")
        rows = task.dataset[cell.split]
    else:
        first, second = "sentence1", "sentence2"
        rows = cell_rows(task, cell)
    sentences1, sentences2 = (texts_of(cell, name, rows[name]) for name in (first, second))
    require_rows(cell, "pair", len(sentences1))
    # As in mteb, only a dict may hold gold: for a table, `in` looks at rows.
    gold = [(int(i), int(j)) for i, j in rows["gold"]] if isinstance(rows, dict) else None
    if gold is None or all(j == i for i, (_, j) in enumerate(gold)):
        return {"pairs": pd.DataFrame({"sentence1": sentences1, "sentence2": sentences2})}
    matches = [sentences2[j] for _, j in gold]
    return {
        "pairs": pd.DataFrame({"sentence1": sentences1, "sentence2": matches}),
        "gold": gold,
        "targets": sentences2,
    }


def protocol_of(task: Any) -> dict[str, Any]:
    """Return whether all subsets are columns of one table."""
    return {"parallel_subsets": bool(task.parallel_subsets)}


def cut(task: Any, pool: Pool, data: TaskData, rows: Mapping[Cell, list[int]]) -> None:
    """Keep the selected sources; mteb then searches their targets and the distractors."""
    pairs = pool.frames["pairs"]
    texts = pool.texts["text"].to_numpy(object)
    dataset: dict[str, dict[str, Any]] = {}
    for split, subset in data.cells:
        selected = of_cell(pool.items, (split, subset))["item_id"]
        own = pairs[pairs["item_id"].isin(selected)]
        others = of_cell(pool.frames["distractors"], (split, subset))
        text_of: dict[int, int] = {}
        for frame in (own, others):
            indices, rows_of_texts = frame["target_index"].tolist(), frame["target_row"].tolist()
            text_of |= dict(zip(indices, rows_of_texts, strict=True))
        order = sorted(text_of)  # as in the data: the first of equally near targets wins
        place = {index: position for position, index in enumerate(order)}
        gold = [place[index] for index in own["target_index"].tolist()]
        dataset.setdefault(subset, {})[split] = {
            "sentence1": texts[own["source_row"].to_numpy()].tolist(),
            "sentence2": texts[[text_of[index] for index in order]].tolist(),
            "gold": list(enumerate(gold)),
        }
    task.dataset = dataset
    task.parallel_subsets = False  # each subset now has its own sources and targets
