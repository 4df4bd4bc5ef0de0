"""Data of a PairClassification task: from mteb's loaded task, or from a user's own files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.task_types.columns import (
    TaskCell,
    cell_rows,
    column_name,
    numbers_of,
    require_rows,
    splits_of,
    texts_of,
)
from mteblite.task_types.own_files import sentences
from mteblite.task_types.own_table import OwnTable


def read_cell(task: Any, cell: TaskCell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return `pairs` [text1, text2, label]; version 1 data sets hold all pairs in one row."""
    rows = cell_rows(task, cell)
    first, second = (column_name(task, f"input{i}_column_name") for i in (1, 2))
    label = task.label_column_name
    if len(rows) == 1:
        # Plain columns are enough: making a data set of them takes seconds.
        rows = {name: values[:] for name, values in rows[0].items()}
    require_rows(cell, "pair", len(rows[first]))
    labels = [int(number) for number in numbers_of(cell, label, rows[label])]
    wrong = sorted(set(labels) - {0, 1})
    if wrong:
        raise ValueError(f"{cell}: label {wrong[0]} of a pair; expected 0 or 1")
    return {
        "pairs": pd.DataFrame(
            {
                "text1": texts_of(cell, first, rows[first]),
                "text2": texts_of(cell, second, rows[second]),
                "label": labels,
            }
        )
    }


def cut(task: Any, pool: Pool, data: TaskData, rows: Mapping[Cell, list[int]]) -> None:
    """Keep the selected pairs; data sets of version 1 hold all pairs in one row of lists."""
    from datasets import Dataset

    for (split, subset), kept in rows.items():
        splits = splits_of(task, subset)
        table = splits[split]
        if len(table) == 1:
            columns = {k: [[v[row] for row in kept]] for k, v in table[0].items()}
            splits[split] = Dataset.from_dict(columns)
        else:
            splits[split] = table.select(kept)


def own_table(table: OwnTable) -> dict[str, list[Any]]:
    """Return the columns sentence1, sentence2, labels of a user's own table.

    Raises:
        ValueError: a value cannot be used, or all labels are equal.
    """
    labels = table.numbers("label", "labels")
    wrong = next((row for row, label in enumerate(labels) if label not in (0, 1)), None)
    if wrong is not None:
        raise table.error(f"a pair with label {labels[wrong]:g}; expected 0 or 1", wrong)
    if len(set(labels)) == 1:
        raise table.error(
            f"every label is {labels[0]:g}; average precision needs pairs of both labels, 0 and 1"
        )
    return sentences(table) | {"labels": [int(label) for label in labels]}
