"""Texts of items: read from the frames of a loaded task, or counted from mteb's statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mteblite.pools.items import Cell, split_evenly
from mteblite.pools.pool import Pool
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.task_type import Frames, Statistics, TextKind


def texts_in(**columns: tuple[str, ...]) -> Callable[[Frames, Pool, Cell], Iterator[str]]:
    """Return a function that yields the texts of some columns, whatever the pool.

    Args:
        columns: names of columns by frame; a value of a column is a text or a list of texts.
    """

    def texts(frames: Frames, pool: Pool, cell: Cell) -> Iterator[str]:
        for frame, names in columns.items():
            for name in names:
                if name in frames[frame].columns:
                    for value in frames[frame][name].tolist():
                        yield from [value] if isinstance(value, str) else value

    return texts


def text_kind(statistics: Statistics) -> TextKind:
    """Return distinct texts and their mean length, from mteb's statistics of a text column."""
    return float(statistics["unique_texts"]), float(statistics["average_text_length"])


def items_by_cell(
    cells: Mapping[Cell, Statistics],
    settings: PoolSettings,
    count: Callable[[Statistics], float] = lambda s: float(s["num_samples"]),
) -> dict[Cell, int]:
    """Return how many items a pool takes of each cell; `count` gives how many a cell has."""
    return split_evenly({cell: int(count(s)) for cell, s in cells.items()}, settings.max_items)


def columns_of_items(
    *columns: str,
) -> Callable[[Mapping[Cell, Statistics], PoolSettings], list[TextKind]]:
    """Return the estimate for types whose items have one text in each of these columns."""

    def text_kinds(cells: Mapping[Cell, Statistics], settings: PoolSettings) -> list[TextKind]:
        quota = items_by_cell(cells, settings)
        return [
            (min(quota[cell], n), length)
            for cell, statistics in cells.items()
            for n, length in (text_kind(statistics[column]) for column in columns)
        ]

    return text_kinds
