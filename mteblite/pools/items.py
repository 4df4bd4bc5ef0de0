"""Item ids, even splitting and stratified drawing of items, for all task types.

Nothing here depends on the order of rows: ids are hashes of content, and random draws use sorted
ids and a generator from stable keys. So a data set in another order gives the same pool.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from mteblite.seeds import generator

Cell = tuple[str, str]
Key = TypeVar("Key", bound=Hashable)


def content_ids(columns: Sequence[Sequence[Any]]) -> list[str]:
    """Return one id per row from the row's content; equal rows are numbered by occurrence.

    Args:
        columns: columns of equal length whose values together identify a row.

    Returns:
        `<16 hex digits of sha256>-<occurrence>` per row. Equal rows are interchangeable, so the
        set of ids does not depend on the order of rows.
    """
    seen: dict[str, int] = {}
    ids = []
    for row in zip(*columns, strict=True):
        text = json.dumps([plain(value) for value in row], ensure_ascii=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        occurrence = seen.get(digest, 0)
        seen[digest] = occurrence + 1
        ids.append(f"{digest}-{occurrence}")
    return ids


def item_ids(cell: Cell, identities: Iterable[str]) -> list[str]:
    """Return item ids of one cell (split, hf_subset) from the items' own identities."""
    split, hf_subset = cell
    return [f"{hf_subset}/{split}/{identity}" for identity in identities]


def plain(value: Any) -> Any:
    """Return a value in the types of JSON: NumPy scalars and arrays become those of Python."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)


def check_texts(frame: pd.DataFrame, columns: Sequence[str], where: str) -> None:
    """Check that every value of these columns is a string.

    Raises:
        ValueError: a column or a text is missing; the message names place, row and column.
    """
    for column in columns:
        if column not in frame.columns:
            raise ValueError(
                f"{where}: no column {column!r}; got {sorted(map(str, frame.columns))}"
            )
        for row, value in zip(frame.index, frame[column].tolist(), strict=True):
            if not isinstance(value, str):
                raise ValueError(
                    f"{where}: row {row}, column {column!r} is {value!r}; expected a text: "
                    "mend or drop that row of the data set"
                )


def check_numbers(values: Sequence[Any], column: str, where: str) -> np.ndarray:
    """Return a column as float64.

    Raises:
        ValueError: a value is not a finite number; the message names place, row and column.
    """
    numbers = pd.to_numeric(pd.Series(list(values), dtype=object), errors="coerce")
    array = numbers.to_numpy(dtype=float)
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        raise ValueError(
            f"{where}: row {bad[0]}, column {column!r} is {list(values)[bad[0]]!r}; "
            "expected a number: mend or drop that row of the data set"
        )
    return array


def split_evenly(available: Mapping[Key, int], total: int | None) -> dict[Key, int]:
    """Return the share of each key in `total` (None = all): equal, but at most what it has."""
    if total is None or total >= sum(available.values()):
        return dict(available)
    taken = dict.fromkeys(available, 0)
    left = total
    open_keys = sorted((k for k in available if available[k]), key=str)
    while left and open_keys:
        share, extra = divmod(left, len(open_keys))
        for rank, key in enumerate(open_keys):
            more = min(share + (rank < extra), available[key] - taken[key])
            taken[key] += more
            left -= more
        open_keys = [k for k in open_keys if taken[k] < available[k]]
    return taken


def split_proportionally(available: Mapping[Key, int], total: int) -> dict[Key, int]:
    """Return stratum sizes proportional to `available`, by largest remainder.

    Every stratum gets at least one where `total` allows it. Of equal remainders, the first key by
    name comes first.
    """
    population = sum(available.values())
    if total >= population:
        return dict(available)
    floor = 1 if total >= len(available) else 0
    exact = {key: total * count / population for key, count in available.items()}
    sizes = {key: max(floor, int(share)) for key, share in exact.items()}
    by_remainder = sorted(available, key=lambda key: (-(exact[key] - int(exact[key])), str(key)))
    while sum(sizes.values()) < total:
        for key in by_remainder:
            if sizes[key] < available[key] and sum(sizes.values()) < total:
                sizes[key] += 1
    while sum(sizes.values()) > total:
        largest = max(sorted(sizes, key=str), key=lambda key: sizes[key] - exact[key])
        sizes[largest] -= 1
    return sizes


def draw(
    ids: Sequence[str], number: int, *keys: str | int, strata: Sequence[Any] | None = None
) -> np.ndarray:
    """Return the rows of `number` items drawn without replacement, in order of their ids.

    Args:
        ids: unique ids.
        number: how many; at most all.
        *keys: stable keys of the draw (seed, task, cell).
        strata: stratum of each row; the draw is then proportional to the strata.
    """
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
    if number >= len(ids):
        return order
    if strata is None:
        picked = generator(*keys).permutation(len(ids))[:number]
        return order[np.sort(picked)]
    members: dict[Any, list[int]] = {}
    for row in order:
        members.setdefault(strata[row], []).append(int(row))
    sizes = split_proportionally({key: len(rows) for key, rows in members.items()}, number)
    kept: set[int] = set()
    for key, rows in members.items():
        permuted = generator(*keys, "stratum", str(key)).permutation(len(rows))
        kept.update(rows[i] for i in permuted[: sizes[key]])
    return np.array([row for row in order if int(row) in kept], dtype=np.int64)
