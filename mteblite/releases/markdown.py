"""Tables and numbers in Markdown, the same bytes for the same values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a Markdown table with numbers aligned to the right; "" without rows."""
    from tabulate import tabulate

    if not rows:
        return ""
    names = list(rows[0])
    numeric = [all(isinstance(row[name], int | float) for row in rows) for name in names]
    return tabulate(
        [[_cell(row[name]) for name in names] for row in rows],
        names,
        "pipe",
        disable_numparse=True,
        colalign=["right" if right else "left" for right in numeric],
    )


def points(value: float) -> str:
    """Return a score or an error in points: times 100, two decimals; `-` = unknown."""
    return "-" if value is None or not math.isfinite(value) else f"{100 * value:.2f}"


def fractions(value: float, digits: int = 3) -> str:
    """Return a number with some decimals; `-` = unknown."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def _cell(value: Any) -> str:
    text = "-" if value is None or value == "" else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
