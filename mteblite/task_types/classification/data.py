"""Data of a Classification task from mteb's loaded task.

The task's own `_undersample_data` draws the train rows of each experiment, as for a fresh task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.task_types.columns import (
    TaskCell,
    column_name,
    cut_rows,
    require_rows,
    splits_of,
    texts_of,
    values_of,
)


def read_cell(task: Any, cell: TaskCell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return `train`, `test` [text, label]; `experiments`: row numbers of `train`, a list each.

    `train` holds only the rows that some experiment draws, which are those that mteb encodes. Its
    column `source_row` is the row of each in the data set.
    """
    text, label = column_name(task, "input_column_name"), task.label_column_name
    by_split = splits_of(task, cell.subset)
    train, test = by_split[task.train_split], by_split[cell.split]
    require_rows(cell, f"row in the train split {task.train_split!r}", len(train))
    require_rows(cell, "row", len(test))
    drawn = train_rows(task, values_of(train[label]))
    kept = sorted(set().union(*drawn))
    position = {row: i for i, row in enumerate(kept)}
    chosen = train.select(kept)
    return {
        "train": pd.DataFrame(
            {
                "text": texts_of(cell, text, chosen[text]),
                "label": values_of(chosen[label]),
                "source_row": kept,
            }
        ),
        "test": pd.DataFrame(
            {"text": texts_of(cell, text, test[text]), "label": values_of(test[label])}
        ),
        "experiments": [[position[row] for row in rows] for rows in drawn],
    }


def protocol_of(task: Any) -> dict[str, Any]:
    """Return the settings of mteb's classifier and of the draws of its train rows.

    Raises:
        ValueError: the task does not use mteb's default classifier.
    """
    from mteb._evaluators.sklearn_evaluator import SklearnEvaluator
    from sklearn.linear_model import LogisticRegression

    name, model = f"{task.metadata.name} ({task.metadata.type})", task.evaluator_model
    if task.is_cross_validation:
        raise ValueError(
            f"{name}: scores by cross-validation on its whole data, for which "
            "there are no fixed items. Leave the task out of the suite"
        )
    usual = LogisticRegression(max_iter=getattr(model, "max_iter", 100)).get_params()
    usual["random_state"] = model.get_params().get("random_state")
    if (task.evaluator, type(model), model.get_params()) != (
        SklearnEvaluator,
        LogisticRegression,
        usual,
    ):
        raise ValueError(
            f"{name}: classifies by {task.evaluator.__name__} with {model}; only "
            "SklearnEvaluator with LogisticRegression is supported. Leave the task out of the suite"
        )
    return {
        "n_experiments": int(task.n_experiments),
        "samples_per_label": int(task.samples_per_label),
        "train_split": task.train_split,
        "max_iter": int(model.max_iter),
        "seed": int(task.seed),  # mteb makes it the classifier's random state
    }


def train_rows(task: Any, labels: Sequence[Any]) -> list[list[int]]:
    """Return the train rows of each experiment, in the order that the classifier gets them.

    Source: `_evaluate_subset` of mteb's `AbsTaskClassification`.

    Args:
        task: an mteb classification task.
        labels: label of each row of the train split.
    """
    column = _LabelColumn(task.label_column_name, labels)
    drawn: list[list[int]] = []
    order = None
    for experiment in range(task.n_experiments):
        # mteb shuffles the order of the experiment before once more.
        _, order, rows = task._undersample_data(column, experiment, order)
        drawn.append([int(row) for row in rows])
    return drawn


class _LabelColumn:
    """A data set's labels in memory; from Arrow, row by row, a million of them take minutes."""

    def __init__(self, name: str, labels: Sequence[Any]) -> None:
        self._columns = {name: list(labels)}
        self._n_rows = len(labels)

    def __len__(self) -> int:
        return self._n_rows

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]

    def select(self, rows: list[int]) -> None:
        """Return nothing: only the row numbers are used."""


def cut(task: Any, pool: Pool, data: TaskData, rows: Mapping[Cell, list[int]]) -> None:
    """Keep the selected test rows, and all train rows, which are in another split.

    Raises:
        ValueError: the task trains on the split that it evaluates.
    """
    for split, _ in rows:
        if task.train_split == split:
            raise ValueError(
                f"{pool.meta['task']}: trains on its evaluation split {split!r}, which therefore "
                "cannot be cut to items: score it with `mteblite score --release`"
            )
    cut_rows(task, pool, data, rows)
