"""A user's own data of types whose data is one table per split, `<split>` or `pairs`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mteblite.task_types.own_files import column, require_table, strings
from mteblite.task_types.task_type import OwnData


def own_tables(
    main_metric: str,
    mteb_class: str,
    read: Callable[[str, Path], dict[str, list[Any]]],
    *,
    extra_splits: Sequence[str] = (),
    category: str = "t2t",
) -> OwnData:
    """Return how the tables of a type become data of a task.

    Args:
        main_metric: see `OwnData`.
        mteb_class: see `OwnData`.
        read: (task, file) -> the columns of mteb's data set.
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
                split: Dataset.from_dict(read(name, file))
                for split, file in zip((*extra_splits, *splits), tables, strict=True)
            }
        )

    return OwnData(main_metric, mteb_class, files, fill, category)


def sentences(task: str, file: Path, frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Return the two columns of sentences of a table of pairs."""
    names = ("sentence1", "sentence2")
    return {name: strings(column(task, file, frame, name)) for name in names}
