"""One table of a user's own data: its columns as ids, texts, labels or numbers, checked.

Every error names the task, the file and the row as a person counts it: the line of a text file, or
the row of a Parquet file, both from 1. What is accepted but worth knowing becomes a note.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mteblite.task_types.own_parsing import ParsedFile, parse

NUMBERS = ("integer", "floating", "mixed-integer-float")
"""Names that pandas' `infer_dtype` has for columns of numbers alone."""
PART = 10_000
"""Texts encoded at a time, to find those that are no Unicode."""
SHOWN = 60
"""Characters of a value in an error."""


@dataclass(frozen=True)
class OwnTable:
    """One table of a task: its rows, the task and file that errors name, and notes about it."""

    task: str
    file: Path
    parsed: ParsedFile
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, task: str, file: Path, wanted: Collection[str] | None = None) -> OwnTable:
        """Return a file's rows; of its columns only those in `wanted`, if it is given.

        Raises:
            ValueError: the file cannot be parsed or holds no row.
        """
        return cls(task, file, parse(f"{task}: {file}", file, wanted))

    def place(self, *rows: int) -> str:
        """Return rows as a person counts them: `line 3`, or `rows 1 and 2` of Parquet."""
        lines = self.parsed.lines
        numbers = [str(row + 1 if lines is None else lines[row]) for row in rows]
        word = "row" if lines is None else "line"
        return f"{word}{'s' if len(rows) > 1 else ''} {' and '.join(numbers)}"

    def error(self, problem: str, *rows: int) -> ValueError:
        """Return an error that names task, file and rows."""
        where = f", {self.place(*rows)}" if rows else ""
        return ValueError(f"{self.task}: {self.file}{where}: {problem}")

    def note(self, text: str, *rows: int) -> None:
        """Keep a note that names the file, and rows if any."""
        where = f", {self.place(*rows)}" if rows else ""
        self.notes.append(f"{self.file.name}{where}: {text}")

    def has(self, name: str) -> bool:
        """Whether the file has this column."""
        return name in self.parsed.columns

    def texts(self, name: str, missing: Sequence[bool] | bool = False) -> list[str]:
        """Return a column of texts; a missing one is empty where `missing` says so.

        A column of numbers alone is read as texts. Empty texts are encoded as they are, as in mteb.

        Raises:
            ValueError: another value is no text.
        """
        values = self._column(name)
        if missing is not False and None in values:
            allowed = [True] * len(values) if missing is True else missing
            values = ["" if v is None and ok else v for v, ok in zip(values, allowed, strict=True)]
        found = values if missing is not True else [values[row] for row in _filled(values)]
        row = _first_no_text(found)
        if row is not None:
            rows = range(len(values)) if missing is not True else _filled(values)
            raise self._no(name, rows[row], "a text")
        if found and type(found[0]) is not str:
            self.note(f"column {name!r} holds numbers alone, which are read as texts")
            values = [str(value) for value in values]
        self._require_unicode(name, values)
        if missing is not True and "" in values:
            number, first = values.count(""), values.index("")
            if number == len(values):
                raise self.error(f"every {name!r} is empty; expected texts", first)
            self.note(f"empty {name!r}, {number} in all: encoded as they are, as in mteb", first)
        self._note_quotes(name, values)
        return values

    def ids(self, *names: str) -> list[str]:
        """Return the first of these columns as ids; a whole number is the text of its digits.

        Raises:
            ValueError: a value is missing, or is no text and no whole number.
        """
        name = self._first(names)
        values = self._column(name)
        row = first_no_id(values)
        if row is not None:
            raise self._no(name, row, "an id: a text, or a whole number without a decimal point")
        ids = [str(value) for value in values]
        self._require_unicode(name, ids)
        return ids

    def labels(self, name: str) -> list[Any]:
        """Return a column of labels: texts, whole numbers or booleans, as they are.

        Raises:
            ValueError: a value is missing, a fraction, a list or an object.
        """
        values = self._column(name)
        kind = pd.api.types.infer_dtype(values, skipna=False)
        if kind not in ("integer", "boolean") and not (kind == "string" and "" not in values):
            for row, value in enumerate(values):
                whole = isinstance(value, float) and value.is_integer()
                if not (isinstance(value, str | int) or whole) or value == "":
                    raise self._no(name, row, "a label: a text, a whole number or a boolean")
        if kind == "string":
            self._require_unicode(name, values)
        return values

    def numbers(self, *names: str) -> list[float]:
        """Return the first of these columns as finite numbers; texts may hold numbers.

        Raises:
            ValueError: a value is no finite number.
        """
        name = self._first(names)
        found = []
        for row, value in enumerate(self._column(name)):
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                number = math.nan
            if not math.isfinite(number):
                point = isinstance(value, str) and "," in value
                hint = " with a decimal point" if point else ""
                raise self._no(name, row, f"a finite number{hint}")
            found.append(number)
        return found

    def lists_of_ids(self, *names: str) -> list[list[str]]:
        """Return the first of these columns, a list of ids in each row.

        Raises:
            ValueError: a value is no list, or a member of it is no id.
        """
        name = self._first(names)
        lists = self._column(name)
        for row, ids in enumerate(lists):
            if not isinstance(ids, list):
                raise self._no(name, row, "a list of ids, as in JSON Lines and Parquet")
        flat = [member for ids in lists for member in ids]
        wrong = first_no_id(flat)
        if wrong is not None:
            row = int(np.searchsorted(np.cumsum([len(ids) for ids in lists]), wrong, "right"))
            raise self._no(name, row, f"ids: {flat[wrong]!r} in it is no text and no whole number")
        return [[str(member) for member in ids] for ids in lists]

    def _note_quotes(self, name: str, values: Sequence[str]) -> None:
        """Note texts of a TSV file that a program with other rules has put into quotes."""
        if ".tsv" in self.file.suffixes:
            rows = [r for r, v in enumerate(values) if v[:1] == v[-1:] == '"']
            if rows:
                self.note(
                    f"{name!r} starts and ends with a quote, {len(rows)} in all: in TSV quotes are "
                    "part of the text",
                    rows[0],
                )

    def _first(self, names: Sequence[str]) -> str:
        """Return the first of these columns that the file has."""
        for name in names:
            if self.has(name):
                return name
        known = self.parsed.names
        hint = ""
        if self.parsed.lines is not None and not any(".jsonl" in s for s in self.file.suffixes):
            tabs = ".tsv" in self.file.suffixes
            hint = (
                f"; expected a first line with the names of the columns, separated by "
                f"{'tabs' if tabs else 'commas'}"
            )
        raise self.error(
            f"no column {' or '.join(map(repr, names))}; it has: "
            f"{', '.join(_cut(str(name)) for name in known[:20])}{hint}"
        )

    def _column(self, name: str) -> list[Any]:
        return self.parsed.columns[self._first([name])]

    def _no(self, name: str, row: int, expected: str) -> ValueError:
        value = _cut(repr(self._column(name)[row]))
        return self.error(f"column {name!r} is {value}; expected {expected}", row)

    def _require_unicode(self, name: str, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), PART):
            try:
                "".join(texts[start : start + PART]).encode()
            except UnicodeEncodeError:
                row, place = next(
                    (r, place)
                    for r in range(start, len(texts))
                    if (place := _surrogate(texts[r])) is not None
                )
                raise self.error(
                    f"column {name!r} has {texts[row][place]!r} at character {place + 1}, half of "
                    "a surrogate pair; expected Unicode: mend or drop the character",
                    row,
                ) from None


def _filled(values: Sequence[Any]) -> list[int]:
    return [row for row, value in enumerate(values) if value != ""]


def _first_no_text(values: Sequence[Any]) -> int | None:
    """Return the first value that is neither a text nor, in a column of numbers alone, a number."""
    kind = pd.api.types.infer_dtype(values, skipna=False)
    if kind in ("string", "integer", "empty"):
        return None
    if kind in NUMBERS:
        return next((i for i, v in enumerate(values) if v != v), None)
    if None in values and not any(type(v) is str for v in values):
        return values.index(None)
    return next(i for i, v in enumerate(values) if type(v) is not str)


def first_no_id(values: Sequence[Any]) -> int | None:
    """Return the first value that is no id: no text, or an empty one, and no whole number."""
    kind = pd.api.types.infer_dtype(values, skipna=False)
    if kind in ("integer", "empty") or (kind == "string" and "" not in values):
        return None
    bad = (i for i, v in enumerate(values) if type(v) not in (str, int) or v == "")
    return next(bad, None)


def _surrogate(text: str) -> int | None:
    """Return the first character that is no Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
