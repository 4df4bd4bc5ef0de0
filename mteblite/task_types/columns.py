"""Reading and cutting mteb data sets, with errors that name the cell and the row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData


@dataclass(frozen=True)
class TaskCell:
    """One (split, subset) of a task, as errors name it."""

    task: str
    split: str
    subset: str

    def __str__(self) -> str:
        """Task, split and subset."""
        return f"{self.task} (split {self.split!r}, subset {self.subset!r})"


def splits_of(task: Any, subset: str) -> Any:
    """Return the data of a subset by split, found as mteb's `AbsTask.evaluate` finds it."""
    data = task.dataset
    return data if subset not in data and subset == "default" else data[subset]


def cell_rows(task: Any, cell: TaskCell) -> Any:
    """Return the data of a cell.

    Raises:
        ValueError: the data holds no such subset or split; lists those it holds.
    """
    if cell.subset not in task.dataset and cell.subset != "default":
        raise ValueError(
            f"{cell}: the data has no such subset; it has {', '.join(map(str, task.dataset))}"
        )
    splits = splits_of(task, cell.subset)
    if cell.split not in splits:
        raise ValueError(
            f"{cell}: the data has no such split; it has {', '.join(map(str, splits))}"
        )
    return splits[cell.split]


def cut_rows(task: Any, pool: Pool, data: TaskData, rows: Mapping[Cell, list[int]]) -> None:
    """Keep the rows of the selected items."""
    for (split, subset), kept in rows.items():
        splits = splits_of(task, subset)
        splits[split] = splits[split].select(kept)


def values_of(column: Iterable[Any]) -> list[Any]:
    """Return a column as a list, read at once: row by row, `datasets` is 70 times slower."""
    return list(column[:] if isinstance(column, Sequence) else column)


def numbers_of(cell: TaskCell, column: str, values: Iterable[Any]) -> list[float]:
    """Return the numbers of a column.

    Raises:
        ValueError: a value is missing or is no number; names row and column.
    """
    found = []
    for row, value in enumerate(values_of(values)):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if number != number:
            raise ValueError(
                f"{cell}: column {column!r} has {value!r} in row {row}; expected a number. "
                "Mend the data or leave the row out"
            )
        found.append(number)
    return found


def texts_of(cell: TaskCell, column: str, values: Iterable[Any]) -> list[str]:
    """Return the texts of a column.

    Raises:
        ValueError: a value is no text; names cell, column and row.
    """
    texts = values_of(values)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"{cell}: {column!r} in row {row} is {text!r}; expected a text: mend or drop that "
                "row of the data set"
            )
    return texts


def require_rows(cell: TaskCell, what: str, count: int) -> None:
    """Refuse a cell without rows.

    Raises:
        ValueError: `count` is 0; names the cell and what it lacks.
    """
    if count == 0:
        raise ValueError(f"{cell}: not a single {what}; nothing can be scored")


def column_name(task: Any, attribute: str, position: int | None = None) -> str:
    """Return the column that an attribute of a task names.

    Raises:
        ValueError: the attribute names several columns (tasks of more than one modality).
    """
    value = getattr(task, attribute)
    if position is not None:
        value = value[position]
    if not isinstance(value, str):
        raise ValueError(
            f"{task.metadata.name}: {attribute} is {value!r}; only tasks with one text column are "
            "supported. Leave the task out of the suite"
        )
    return value
