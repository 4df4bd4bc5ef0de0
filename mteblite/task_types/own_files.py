"""A user's own data: finding and reading its files, and making a task's data set of them.

A table `x` is the first of `x.parquet`, `x.jsonl`, `x.tsv`, `x.csv` in the task's folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mteblite.task_types.task_type import OwnData

SUFFIXES = (".parquet", ".jsonl", ".tsv", ".csv")


@dataclass(frozen=True)
class OwnTable:
    """One table of a task: its rows, and the task and file that errors name."""

    task: str
    file: Path
    frame: pd.DataFrame

    @classmethod
    def read(cls, task: str, file: Path) -> OwnTable:
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
        return cls(task, file, frame)

    def column(self, *names: str) -> list[Any]:
        """Return the values of the first of these columns.

        Raises:
            ValueError: there is none of them, or a value is missing; names file, column and row.
        """
        present = [name for name in names if name in self.frame.columns]
        if not present:
            raise ValueError(
                f"{self.task}: {self.file} has no column {' or '.join(map(repr, names))}; it has: "
                f"{', '.join(map(str, self.frame.columns))}"
            )
        values = self.frame[present[0]]
        missing = values.isna().to_numpy().nonzero()[0]
        if len(missing):
            raise ValueError(
                f"{self.task}: {self.file}, column {present[0]!r}: row {missing[0]} has no value"
            )
        return values.tolist()

    def strings(self, *names: str) -> list[str]:
        """Return a column as texts; ids may be numbers in a file."""
        return [str(value) for value in self.column(*names)]

    def numbers(self, *names: str) -> list[float]:
        """Return a column as numbers."""
        return [self.number(row, value) for row, value in enumerate(self.column(*names))]

    def number(self, row: int, value: Any) -> float:
        """Return a value as a number.

        Raises:
            ValueError: the value is no number; names file and row.
        """
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"{self.task}: {self.file}, row {row}: {value!r} is no number"
            ) from None


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
        ValueError: the folder or the file is missing; lists the accepted names.
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


def content_revision(files: Sequence[Path]) -> str:
    """Return a short hash over the files' names and bytes, which changes with the data."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


def own_tables(
    main_metric: str,
    mteb_class: str,
    read: Callable[[OwnTable], dict[str, list[Any]]],
    *,
    extra_splits: Sequence[str] = (),
    category: str = "t2t",
) -> OwnData:
    """Return the `OwnData` of a type whose data is one table per split, `<split>` or `pairs`.

    Args:
        main_metric: see `OwnData`.
        mteb_class: see `OwnData`.
        read: from a table to the columns of mteb's data set.
        extra_splits: splits that mteb reads besides those it evaluates.
        category: see `OwnData`.
    """

    def files(task: str, folder: Path, splits: Sequence[str]) -> list[Path]:
        extra = [require_table(task, folder, split) for split in extra_splits]
        return extra + [require_table(task, folder, split, "pairs") for split in splits]

    def fill(self: Any) -> Any:
        from datasets import Dataset, DatasetDict

        name, splits = self.metadata.name, self.eval_splits
        tables = files(name, self.own_folder, splits)
        return DatasetDict(
            {
                split: Dataset.from_dict(read(OwnTable.read(name, file)))
                for split, file in zip((*extra_splits, *splits), tables, strict=True)
            }
        )

    return OwnData(main_metric, mteb_class, files, fill, category)


def sentences(table: OwnTable) -> dict[str, list[Any]]:
    """Return the two columns of sentences of a table of pairs."""
    return {name: table.strings(name) for name in ("sentence1", "sentence2")}


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
