"""Seeded draws that stay the same on every machine and Python version."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def draw(rows: Iterable[T], size: int, *keys: str | int) -> list[T]:
    """Return `size` of the rows, drawn without replacement, in sorted order.

    The rows are sorted first, so their order of arrival does not matter. A smaller number of rows
    than asked for is an error, because the sample tasks have fixed sizes.

    Args:
        rows: distinct, sortable rows.
        size: how many to draw.
        keys: what the seed is made of.

    Raises:
        ValueError: fewer rows than asked for, e.g. because the package has another version.
    """
    ordered = sorted(rows)  # type: ignore[type-var]
    if len(ordered) < size:
        raise ValueError(
            f"sample {'/'.join(map(str, keys))} asks for {size} rows, its package has "
            f"{len(ordered)}: install the pinned versions with `pip install 'mteblite[sample]'`"
        )
    # seeding by text is documented and stable (sha512 of the text), unlike hash()
    return sorted(random.Random("/".join(map(str, keys))).sample(ordered, size))  # type: ignore[type-var]
