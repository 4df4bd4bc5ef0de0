"""Reading columns of mteb data sets, with errors that say which cell and row is at fault."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One (split, subset) of a task, as errors name it."""

    task: str
    split: str
    subset: str

    def __str__(self) -> str:
        """Task, split and subset."""
        return f"{self.task} (split {self.split!r}, subset {self.subset!r})"


def cell_rows(task: Any, cell: Cell) -> Any:
    """Return the data of a cell, found as mteb's `AbsTask.evaluate` finds it."""
    if cell.subset not in task.dataset and cell.subset == "default":
        return task.dataset[cell.split]
    return task.dataset[cell.subset][cell.split]


def texts_of(cell: Cell, column: str, values: Iterable[Any]) -> list[str]:
    """Return a column's texts.

    Raises:
        ValueError: a value is no text; names cell, column and row.
    """
    texts = list(values)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"{cell}: {column!r} in row {row} is {text!r}; expected a text: mend or drop that "
                "row of the data set"
            )
    return texts


def require_rows(cell: Cell, what: str, count: int) -> None:
    """Refuse an empty cell.

    Raises:
        ValueError: there is nothing.
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
