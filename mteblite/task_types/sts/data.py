"""Data of an STS task: from mteb's loaded task, or from a user's own files."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mteblite.task_types.columns import (
    TaskCell,
    cell_rows,
    column_name,
    numbers_of,
    require_rows,
    texts_of,
)
from mteblite.task_types.own_files import sentences
from mteblite.task_types.own_table import OwnTable


def read_cell(task: Any, cell: TaskCell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return `pairs` [text1, text2, gold], gold on the data set's own scale."""
    rows = cell_rows(task, cell)
    first, second = (column_name(task, "column_names", position) for position in (0, 1))
    require_rows(cell, "pair", len(rows))
    return {
        "pairs": pd.DataFrame(
            {
                "text1": texts_of(cell, first, rows[first]),
                "text2": texts_of(cell, second, rows[second]),
                "gold": numbers_of(cell, "score", rows["score"]),
            }
        )
    }


def protocol_of(task: Any) -> dict[str, Any]:
    """Return the range of gold scores and the prompt types of the two texts."""
    scale = {"min_score": float(task.min_score), "max_score": float(task.max_score)}
    return {**scale, **prompt_types(task)}


def prompt_types(task: Any) -> dict[str, Any]:
    """Return the prompt types of the two texts; None where mteb encodes without one."""
    return {
        f"input{i}_prompt_type": None if kind is None else str(kind.value)
        for i, kind in ((1, task.input1_prompt_type), (2, task.input2_prompt_type))
    }


def own_table(table: OwnTable) -> dict[str, list[Any]]:
    """Return the columns sentence1, sentence2, score of a user's own table.

    Raises:
        ValueError: a value cannot be used, or all scores are equal.
    """
    scores = table.numbers("score")
    if len(set(scores)) == 1:
        raise table.error(
            f"every score is {scores[0]:g}; a correlation needs at least two different scores"
        )
    return sentences(table) | {"score": scores}
