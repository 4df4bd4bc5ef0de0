"""Tables for the terminal: numbers aligned by their decimals, lines no wider than the terminal."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

GAP = 2
NARROWEST = 12
"""Characters that a shortened text keeps at least."""
UNLIMITED = 100_000


def print_table(
    rows: Sequence[Mapping[str, Any]], title: str = "", drop: Sequence[str] = ()
) -> None:
    """Print rows as a table.

    Args:
        rows: values by column; all rows have the same columns.
        title: line above the table.
        drop: columns that a narrow terminal does without, the first one first. Where that is not
            enough, texts are shortened in their middle. Numbers are always whole.
    """
    from rich.console import Console
    from rich.table import Table

    if not rows:
        return
    cells = {str(name): _cells([row[name] for row in rows]) for name in rows[0]}
    numbers = {str(name) for name in rows[0] if _is_number([row[name] for row in rows])}
    left_out = _fit(cells, numbers, drop, _width())
    table = Table(box=None, header_style="bold")
    for name in cells:
        table.add_column(name, justify="right" if name in numbers else "left", no_wrap=True)
    for line in zip(*cells.values(), strict=True):
        table.add_row(*line)
    console = Console(width=UNLIMITED, highlight=False, markup=False)
    if title:  # rich would wrap a table's title at the width of the table
        console.print(title, style="italic")
    console.print(table)
    if left_out:
        console.print(f"(not shown in {_width()} columns: {', '.join(left_out)})")


def _width() -> int:
    """Return the columns of the terminal or of COLUMNS; a pipe or a log has no width."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size().columns
    return UNLIMITED


def _fit(
    cells: dict[str, list[str]], numbers: set[str], drop: Sequence[str], width: int
) -> list[str]:
    """Drop and shorten columns in place until a line fits; return the dropped ones with values."""
    empty = [name for name, column in cells.items() if set(column) == {"-"}]
    dropped = []
    for name in [*empty, *drop]:
        if sum(_widths(cells)) > width and name in cells and len(cells) > 1:
            del cells[name]
            dropped += [name] if name not in empty else []
    while (over := sum(_widths(cells)) - width) > 0:
        room = {
            name: size - GAP - max(NARROWEST, len(name))
            for name, size in zip(cells, _widths(cells), strict=True)
            if name not in numbers
        }
        widest = max(room, key=lambda name: room[name], default="")
        if not widest or room[widest] <= 0:
            break
        second = max([0, *(r for name, r in room.items() if name != widest)])
        cut = min(over, max(1, room[widest] - second))
        most = max(map(_len, cells[widest])) - cut
        cells[widest] = [_shorter(text, most) for text in cells[widest]]
    return dropped


def _widths(cells: Mapping[str, Sequence[str]]) -> list[int]:
    return [max(_len(text) for text in (name, *column)) + GAP for name, column in cells.items()]


def _len(text: str) -> int:
    """Return the columns that a text takes: a Chinese character takes two."""
    from rich.cells import cell_len

    return cell_len(text)


def _shorter(text: str, most: int) -> str:
    """Leave out the middle of a text, so that it takes at most so many columns."""
    if _len(text) <= most:
        return text
    head, tail = len(text) - 1, 0
    while head > 0 and _len(text[:head]) > most // 2:
        head -= 1
    for size in range(1, len(text) - head):
        if _len(text[:head]) + 1 + _len(text[-size:]) <= most:
            tail = size
    return f"{text[:head]}…{text[len(text) - tail :]}"


def _is_number(values: Sequence[Any]) -> bool:
    return any(isinstance(v, int | float) for v in values)


def _cells(values: Sequence[Any]) -> list[str]:
    """Return the texts of a column; its numbers have the same decimals."""
    floats = [v for v in values if isinstance(v, float) and math.isfinite(v)]
    form = _form(floats) if floats else "d"
    return [_text(value, form) for value in values]


def _form(floats: Sequence[float]) -> str:
    """Return the format of a column of numbers: two decimals, or four of small ones."""
    sizes = [abs(v) for v in floats if v]
    if all(round(v, 2) == v for v in floats) or (max(sizes) >= 2 and min(sizes) >= 0.05):
        return ".2f"
    if max(sizes) >= 1e6 * min(sizes) or max(sizes) < 0.001:
        return ".4g"
    return ".4f"


def _text(value: Any, form: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format(value, form) if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
