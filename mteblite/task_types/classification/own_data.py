"""Reading a user's own labelled texts: labels of train and test rows are of one type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mteblite.task_types.own_files import Columns
from mteblite.task_types.own_table import OwnTable

TRAIN = "train"


def own_table(table: OwnTable) -> Columns:
    """Return the columns text, label of a user's own table."""
    return {"text": table.texts("text"), "label": table.labels("label")}


def agree(tables: Mapping[str, OwnTable], columns: dict[str, Columns]) -> dict[str, Columns]:
    """Return the columns by split with labels of one type.

    Where some labels are whole numbers and the others their digits as text, all become numbers.

    Raises:
        ValueError: the types differ otherwise, or the train split has a single label.
    """
    columns = _one_type(tables, columns)
    train = columns[TRAIN]
    known = set(train["label"])
    if len(known) < 2:
        raise tables[TRAIN].error(
            f"every label is {train['label'][0]!r}; a classifier needs at least two labels"
        )
    seen = set(train["text"])
    for split, part in columns.items():
        if split == TRAIN:
            continue
        unseen = Counter(label for label in part["label"] if label not in known)
        for label, number in unseen.most_common(3):
            tables[split].note(
                f"label {label!r} is not in the train split (rows with it: {number}): a classifier "
                "cannot find it, as in mteb"
            )
        leaked = sum(text in seen for text in part["text"])
        if leaked:
            tables[split].note(
                f"texts that are also in the train split: {leaked} of {len(part['text'])}"
            )
    return columns


def _one_type(tables: Mapping[str, OwnTable], columns: dict[str, Columns]) -> dict[str, Columns]:
    first: dict[str, tuple[OwnTable, int, Any]] = {}
    """Table, row and label of the first label of each type."""
    for split, part in columns.items():
        kinds = [_kind(label) for label in part["label"]]
        for kind in sorted(set(kinds) - first.keys()):
            row = kinds.index(kind)
            first[kind] = tables[split], row, part["label"][row]
    if len(first) < 2:
        return columns
    if set(first) == {"number", "text"}:
        numbers = {split: _as_numbers(part["label"]) for split, part in columns.items()}
        whole = {split: labels for split, labels in numbers.items() if labels is not None}
        if len(whole) == len(columns):
            table, row, label = first["text"]
            table.note(f"label {label!r} is a text and others are numbers: all become numbers", row)
            return {split: {**part, "label": whole[split]} for split, part in columns.items()}
    (one, (table, row, label)), (other, (later, place, value)) = list(first.items())[:2]
    raise later.error(
        f"label {value!r} is a {other}, but {label!r} in {table.file.name}, {table.place(row)}, is "
        f"a {one}; expected labels of one type in all splits",
        place,
    )


def _kind(label: Any) -> str:
    return {str: "text", bool: "boolean"}.get(type(label), "number")


def _as_numbers(labels: list[Any]) -> list[Any] | None:
    """Return labels as whole numbers, or None where a text is not the digits of one."""
    if any(isinstance(label, str) and not _is_whole(label) for label in labels):
        return None
    return [int(label) for label in labels]


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and str(int(text)) == text
