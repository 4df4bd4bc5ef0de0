"""A user's own data: finding and reading its files, and making a task's data set of them.

A table `x` is the first of `x.parquet`, `x.jsonl`, `x.tsv`, `x.csv`, `x.jsonl.gz`, `x.tsv.gz`,
`x.csv.gz` in the task's folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mteblite.task_types.own_table import OwnTable
from mteblite.task_types.task_type import OwnData, OwnRead

SUFFIXES = (".parquet", ".jsonl", ".tsv", ".csv", ".jsonl.gz", ".tsv.gz", ".csv.gz")

Columns = dict[str, list[Any]]
"""Columns of one split of mteb's data set."""


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
        hint = "; write it with / instead of \\" if "\\" in str(folder) else ""
        raise ValueError(f"{task}: its path {folder} is no folder{hint}")
    file = find_table(folder, *names)
    if file is None:
        raise ValueError(
            f"{task}: {folder} holds no {' or '.join(names)} table; expected a file "
            f"{names[0]} ending in {', '.join(SUFFIXES)}; {_found_instead(folder, names)}"
        )
    return file


def _found_instead(folder: Path, names: Sequence[str]) -> str:
    for name in names:
        saved = [*(folder / name).glob("*.arrow"), *(folder / name).glob(f"{name}-*.parquet")]
        if saved:
            return (
                f"{name} is a folder of `datasets`: load it with `datasets` and write "
                f"`to_parquet({str(folder / name) + '.parquet'!r})`"
            )
    entries = sorted(entry.name for entry in folder.iterdir())[:10]
    return f"the folder holds: {', '.join(entries) or 'nothing'}"


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
    read: Callable[[OwnTable], Columns],
    *,
    extra_splits: Sequence[str] = (),
    category: str = "t2t",
    agree: Callable[[Mapping[str, OwnTable], dict[str, Columns]], dict[str, Columns]] | None = None,
) -> OwnData:
    """Return the `OwnData` of a type whose data is one table per split, `<split>` or `pairs`.

    Args:
        main_metric: see `OwnData`.
        mteb_class: see `OwnData`.
        read: from a table to the columns of mteb's data set.
        extra_splits: splits that mteb reads besides those it evaluates.
        category: see `OwnData`.
        agree: from the tables and columns by split to columns that fit together.
    """

    def files(task: str, folder: Path, splits: Sequence[str]) -> list[Path]:
        extra = [require_table(task, folder, split) for split in extra_splits]
        return extra + [require_table(task, folder, split, "pairs") for split in splits]

    def read_splits(task: str, folder: Path, splits: Sequence[str]) -> OwnRead:
        found = files(task, folder, splits)
        names = (*extra_splits, *splits)
        tables = {n: OwnTable.read(task, file) for n, file in zip(names, found, strict=True)}
        columns = {name: read(table) for name, table in tables.items()}
        if agree is not None:
            columns = agree(tables, columns)
        return OwnRead(columns, [note for table in tables.values() for note in table.notes])

    def fill(columns: dict[str, Columns]) -> Any:
        from datasets import Dataset, DatasetDict

        return DatasetDict({split: Dataset.from_dict(part) for split, part in columns.items()})

    return OwnData(main_metric, mteb_class, files, read_splits, fill, category)


def sentences(table: OwnTable) -> Columns:
    """Return the two columns of sentences of a table of pairs."""
    return {name: table.texts(name) for name in ("sentence1", "sentence2")}
