"""Reading the files of a user's own task: JSON lines, Parquet or tables of text.

A table `x` is the first of `x.parquet`, `x.jsonl`, `x.tsv`, `x.csv` in the task's folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

SUFFIXES = (".parquet", ".jsonl", ".tsv", ".csv")


def find_table(folder: Path, *names: str) -> Path | None:
    """Return the file of the first of these tables that the folder holds, or None."""
    for name in names:
        for suffix in SUFFIXES:
            file = folder / f"{name}{suffix}"
            if file.is_file():
                return file
    return None


def require_table(task: str, folder: Path, *names: str) -> Path:
    """Return the file of the first of these tables.

    Raises:
        ValueError: the folder or the file is missing; says which names are looked for.
    """
    if not folder.is_dir():
        raise ValueError(f"{task}: its path {folder} is no folder")
    file = find_table(folder, *names)
    if file is None:
        raise ValueError(
            f"{task}: {folder} holds no {' or '.join(names)} table; expected a file "
            f"{names[0]} ending in {', '.join(SUFFIXES)}"
        )
    return file


def read_table(task: str, file: Path) -> pd.DataFrame:
    """Return a file's rows; ids of JSON numbers stay as they are written.

    Raises:
        ValueError: the file cannot be parsed or holds no row.
    """
    try:
        frame = _parse(file)
    except ValueError as error:
        raise ValueError(f"{task}: {file} cannot be read as {file.suffix}: {error}") from error
    if frame.empty:
        raise ValueError(f"{task}: {file} holds no row")
    return frame


def column(task: str, file: Path, frame: pd.DataFrame, *names: str) -> list[Any]:
    """Return the values of the first of these columns.

    Raises:
        ValueError: there is none of them, or a value is missing; names file, column and row.
    """
    present = [name for name in names if name in frame.columns]
    if not present:
        raise ValueError(
            f"{task}: {file} has no column {' or '.join(map(repr, names))}; it has: "
            f"{', '.join(map(str, frame.columns))}"
        )
    values = frame[present[0]]
    missing = values.isna().to_numpy().nonzero()[0]
    if len(missing):
        raise ValueError(f"{task}: {file}, column {present[0]!r}: row {missing[0]} has no value")
    return values.tolist()


def strings(values: list[Any]) -> list[str]:
    """Return the values as texts; ids may be numbers in a file."""
    return [str(value) for value in values]


def number(task: str, file: Path, row: int, value: Any) -> float:
    """Return a value as a number.

    Raises:
        ValueError: it is none; names file and row.
    """
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{task}: {file}, row {row}: {value!r} is no number") from None


def content_revision(files: Sequence[Path]) -> str:
    """Return a short hash over the files' names and bytes: data that changed is other data."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


def _parse(file: Path) -> pd.DataFrame:
    if file.suffix == ".parquet":
        return pd.read_parquet(file)
    if file.suffix == ".jsonl":
        # Without dtype=False pandas turns the id "007" into the number 7.
        return pd.read_json(file, lines=True, dtype=False, convert_dates=False)
    separator = "\t" if file.suffix == ".tsv" else ","
    # Texts like "NA" or "null" are texts; only an empty field is missing.
    options: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "dtype": str}
    return pd.read_csv(file, sep=separator, **options)
