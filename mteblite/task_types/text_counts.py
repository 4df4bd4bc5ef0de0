"""Numbers and lengths of texts, from the descriptive statistics that mteb ships."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mteblite.pools.items import Cell, split_evenly
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.task_type import Statistics, TextKind


def text_kind(statistics: Statistics) -> TextKind:
    """Return distinct texts and their mean length, from mteb's statistics of a text column."""
    return float(statistics["unique_texts"]), float(statistics["average_text_length"])


def items_by_cell(
    cells: Mapping[Cell, Statistics],
    settings: PoolSettings,
    count: Callable[[Statistics], float] = lambda s: float(s["num_samples"]),
) -> dict[Cell, int]:
    """Return how many items a pool takes of each cell; `count` says how many a cell has."""
    return split_evenly({cell: int(count(s)) for cell, s in cells.items()}, settings.max_items)


def columns_of_items(
    *columns: str,
) -> Callable[[Mapping[Cell, Statistics], PoolSettings], list[TextKind]]:
    """Return the estimate for types whose items have one text in each of these columns."""

    def text_kinds(cells: Mapping[Cell, Statistics], settings: PoolSettings) -> list[TextKind]:
        quota = items_by_cell(cells, settings)
        found = []
        for cell, statistics in cells.items():
            for n, length in (text_kind(statistics[column]) for column in columns):
                found.append((min(quota[cell], n), length))
        return found

    return text_kinds
