"""Texts in the frames of a loaded task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.task_types.task_type import Frames


def texts_in(**columns: tuple[str, ...]) -> Callable[[Frames, Pool, Cell], Iterator[str]]:
    """Return what yields the texts of some columns, whatever pool asks for them.

    Args:
        columns: names of columns by frame; a value of a column is a text or a list of texts.
    """

    def texts(frames: Frames, pool: Pool, cell: Cell) -> Iterator[str]:
        for frame, names in columns.items():
            for name in names:
                if name in frames[frame].columns:
                    yield from _flat(frames[frame][name].tolist())

    return texts


def _flat(values: list[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        else:
            yield from value
