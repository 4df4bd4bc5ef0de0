"""Data of a Summarization task from mteb's loaded task."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mteblite.task_types.columns import TaskCell, cell_rows, require_rows, texts_of, values_of


def read_cell(task: Any, cell: TaskCell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return `documents` [text, human_summaries, machine_summaries, relevance].

    The last three are lists.
    """
    rows = cell_rows(task, cell)
    require_rows(cell, "document", len(rows))
    text = task.text_column_name
    frame: dict[str, list[Any]] = {"text": texts_of(cell, text, rows[text])}
    for name in ("human_summaries", "machine_summaries"):
        column = getattr(task, f"{name}_column_name")
        frame[name] = [texts_of(cell, column, summaries) for summaries in values_of(rows[column])]
    frame["relevance"] = [
        [float(r) for r in line] for line in values_of(rows[task.relevancy_column_name])
    ]
    return {"documents": pd.DataFrame(frame)}


def protocol_of(task: Any) -> dict[str, Any]:
    """Return the range of human scores and the name of the evaluator."""
    scale = {"min_score": float(task.min_score), "max_score": float(task.max_score)}
    return {**scale, "evaluator": task.evaluator.__name__}
