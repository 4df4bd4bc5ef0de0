"""Data of a PairClassification task: from mteb's loaded task, or from a user's own files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from mteblite.pools import items
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.task_types.columns import (
    Cell,
    cell_rows,
    column_name,
    holder_of,
    numbers_of,
    require_rows,
    texts_of,
)
from mteblite.task_types.own_files import column, number, read_table
from mteblite.task_types.own_tables import sentences


def read_cell(task: Any, cell: Cell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return `pairs` [text1, text2, label]; version 1 data sets hold all pairs in one row."""
    rows = cell_rows(task, cell)
    first, second = (column_name(task, f"input{i}_column_name") for i in (1, 2))
    label = task.label_column_name
    if len(rows) == 1:
        # Columns as they are: a data set made of them would take seconds.
        rows = {name: values[:] for name, values in rows[0].items()}
    require_rows(cell, "pair", len(rows[first]))
    labels = [int(number) for number in numbers_of(cell, label, rows[label])]
    odd = sorted(set(labels) - {0, 1})
    if odd:
        raise ValueError(f"{cell}: label {odd[0]} of a pair; expected 0 or 1")
    return {
        "pairs": pd.DataFrame(
            {
                "text1": texts_of(cell, first, rows[first]),
                "text2": texts_of(cell, second, rows[second]),
                "label": labels,
            }
        )
    }


def cut(task: Any, pool: Pool, data: TaskData, rows: Mapping[items.Cell, list[int]]) -> None:
    """Keep the selected pairs; data sets of version 1 hold all pairs in one row of lists."""
    from datasets import Dataset

    for (split, subset), kept in rows.items():
        holder = holder_of(task, subset)
        table = holder[split]
        if len(table) == 1:
            columns = {k: [[v[row] for row in kept]] for k, v in table[0].items()}
            holder[split] = Dataset.from_dict(columns)
        else:
            holder[split] = table.select(kept)


def own_table(task: str, file: Path) -> dict[str, list[Any]]:
    """Return the columns sentence1, sentence2, labels of a user's own table."""
    frame = read_table(task, file)
    labels = column(task, file, frame, "label", "labels")
    numbers = [number(task, file, row, value) for row, value in enumerate(labels)]
    odd = [value for value in numbers if value not in (0, 1)]
    if odd:
        raise ValueError(f"{task}: {file} has a pair with label {odd[0]:g}; expected 0 or 1")
    return sentences(task, file, frame) | {"labels": [int(value) for value in numbers]}
