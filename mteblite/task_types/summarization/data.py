"""Data of a Summarization task from mteb's loaded task."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mteblite.task_types.columns import Cell, cell_rows, require_rows, texts_of, values_of


def read_cell(task: Any, cell: Cell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return `documents` [text, human_summaries, machine_summaries, relevance].

    The last three are lists.
    """
    rows = cell_rows(task, cell)
    require_rows(cell, "document", len(rows))
    columns = {
        "human_summaries": task.human_summaries_column_name,
        "machine_summaries": task.machine_summaries_column_name,
    }
    frame: dict[str, list[Any]] = {
        "text": texts_of(cell, task.text_column_name, rows[task.text_column_name])
    }
    for name, column in columns.items():
        frame[name] = [texts_of(cell, column, summaries) for summaries in values_of(rows[column])]
    frame["relevance"] = [
        [float(r) for r in line] for line in values_of(rows[task.relevancy_column_name])
    ]
    return {"documents": pd.DataFrame(frame)}


def protocol_of(task: Any) -> dict[str, Any]:
    """Return the range of human scores and the evaluator.

    The deprecated evaluator, SummEval's before .v2, leaves documents with one constant side out.
    """
    scale = {"min_score": float(task.min_score), "max_score": float(task.max_score)}
    return {**scale, "evaluator": task.evaluator.__name__}
