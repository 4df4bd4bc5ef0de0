"""Finding a pool's items and texts again in a task's data, by content and never by position.

Item ids are hashes of an item's content (or ids of the data set). Data in another order, or of
another download, therefore hold the same items.
"""

from __future__ import annotations

from collections.abc import Iterator

from mteblite.pools.items import Cell, item_ids
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.task_types.registry import find_type


def item_rows(data: TaskData) -> dict[str, tuple[Cell, int]]:
    """Return the place of each item of a loaded task: item_id -> ((split, hf_subset), row).

    The row is that of the frame that holds the type's items: `test`, `pairs`, `documents` or
    `queries`. An item of several sub-queries has the place of the first one.
    """
    identify = find_type(data.description.task_type).identify
    found: dict[str, tuple[Cell, int]] = {}
    for cell, frames in data.cells.items():
        rows, identities = identify(frames, data.description.main_metric)
        for row, item in zip(rows, item_ids(cell, identities), strict=True):
            found.setdefault(item, (cell, row))
    return found


def rows_by_cell(pool: Pool, data: TaskData) -> dict[Cell, list[int]]:
    """Return the rows of a pool's items per cell, in the data's order."""
    where = item_rows(data)
    rows: dict[Cell, list[int]] = {cell: [] for cell in data.cells}
    for item in pool.items["item_id"]:
        cell, row = where[item]
        rows[cell].append(row)
    return {cell: sorted(found) for cell, found in rows.items()}


def texts_of(data: TaskData, pool: Pool) -> Iterator[str]:
    """Yield texts of a loaded task that a pool of it may need.

    Args:
        data: the loaded task.
        pool: a pool of the task, whose texts may be unknown (`text_hashes`). Of a search task only
            the pool's queries and documents are read, because a corpus may hold millions.
    """
    texts = find_type(data.description.task_type).texts
    for cell, frames in data.cells.items():
        yield from texts(frames, pool, cell)
