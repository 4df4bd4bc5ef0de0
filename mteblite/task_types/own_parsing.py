"""Parsing the files of a user's own data into columns, exactly as they are written.

The kind of a file is its ending: `.parquet`, or `.jsonl`, `.tsv`, `.csv`, each also with `.gz`.
Text is UTF-8, with or without a byte order mark, and a line ends at a line feed alone. TSV has no
quotes; CSV has those of RFC 4180.
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

MARK = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
POINTER = b"version https://git-lfs"
LONGEST_FIELD = 2**31 - 1
"""Python's csv refuses fields of more than 131,072 characters unless told otherwise."""
DECIMALS = 15
"""Digits after the point of a JSON number that count."""


@dataclass(frozen=True)
class ParsedFile:
    """The columns of a file.

    Attributes:
        names: every column of the file.
        columns: the values of those that were asked for; a missing value is None.
        n_rows: how many rows it has.
        lines: the line of each row, from 1; None for Parquet, whose rows have no lines.
    """

    names: list[str]
    columns: dict[str, list[Any]]
    n_rows: int
    lines: Sequence[int] | None


def parse(where: str, file: Path, wanted: Collection[str] | None = None) -> ParsedFile:
    """Return the columns of a file.

    Args:
        where: the file as errors name it.
        file: path of the file.
        wanted: names of columns; None = all.

    Raises:
        ValueError: the file cannot be parsed or holds no row; names the line where there is one.
    """
    kind = Path(file.name.removesuffix(".gz")).suffix
    try:
        _check_start(where, file, kind)
        found = _parse(where, file, kind, wanted)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{where} cannot be read: {error}") from error
    if not found.n_rows:
        raise ValueError(f"{where} holds no row; expected at least one")
    return found


def as_stored(number: str) -> float:
    """Return a JSON number with a fraction, as whole + digits * 0.1**n.

    Its last bit can differ from that of `float`. Ids of stored pools and releases are hashes of
    numbers that were read so.
    """
    mantissa, _, exponent = number.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = fraction[:DECIMALS]
    value = float(int(whole)) + (int(digits) * float(f"1e-{len(digits)}") if digits else 0.0)
    value = -value if mantissa.startswith("-") else value
    return value * 10.0 ** int(exponent) if exponent else value


def _parse(where: str, file: Path, kind: str, wanted: Collection[str] | None) -> ParsedFile:
    if kind == ".parquet":
        return _parquet(where, file, wanted)
    lines = _lines(where, file)
    if kind == ".jsonl":
        return _json_lines(where, lines, wanted)
    return _table(where, _tab_rows(lines) if kind == ".tsv" else _comma_rows(where, lines))


def _open(file: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb"))


def _check_start(where: str, file: Path, kind: str) -> None:
    with file.open("rb") as stored:
        if stored.read(len(POINTER)) == POINTER:
            raise ValueError(f"{where} is a Git LFS pointer, not the data: run `git lfs pull`")
    with _open(file) as stream:
        start = stream.read(4)
    if not start:
        raise ValueError(f"{where} is empty; expected at least one row")
    if kind != ".parquet" and (start.startswith(UTF16) or b"\0" in start):
        raise ValueError(f"{where}, byte 1: the file is UTF-16; expected UTF-8: convert the file")


def _lines(where: str, file: Path) -> Iterator[tuple[int, str]]:
    """Yield each line and its number; U+2028, U+0085 and the like are no ends of lines."""
    with _open(file) as stream:
        for number, line in enumerate(stream, 1):
            raw = line.removeprefix(MARK) if number == 1 else line
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{where}, line {number}: byte {error.start + 1} of the line, "
                    f"0x{raw[error.start]:02x}, is no UTF-8; expected UTF-8: convert the file"
                ) from None
            yield number, text


def _json_lines(
    where: str, lines: Iterator[tuple[int, str]], wanted: Collection[str] | None
) -> ParsedFile:
    seen: dict[str, None] = {}
    columns: dict[str, list[Any]] = {}
    numbers = array("q")
    decode = json.JSONDecoder(parse_float=as_stored).decode
    for number, line in lines:
        if not line.strip():
            continue
        try:
            record = decode(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{where}, line {number}: {_shown(line)} is no JSON ({error}); expected one JSON "
                "object per line, without a comma after it"
            ) from None
        if type(record) is not dict:
            raise ValueError(
                f"{where}, line {number}: {_shown(line)} is a JSON {type(record).__name__}; "
                "expected one JSON object per line"
            )
        for name in record.keys() - seen.keys():
            if wanted is None or name in wanted:
                columns[name] = [None] * len(numbers)
        seen |= dict.fromkeys(record)
        for name, values in columns.items():
            values.append(record.get(name))
        numbers.append(number)
    return ParsedFile(list(seen), columns, len(numbers), numbers)


def _tab_rows(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    for number, line in lines:
        bare = line.removesuffix("\n").removesuffix("\r")
        if bare:
            yield number, bare.split("\t")


def _comma_rows(where: str, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader((text for _, text in lines), strict=True)
    while True:
        first = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise ValueError(
                f"{where}, line {first}: {error}, read up to line {reader.line_num}; a field with "
                'a quote needs quotes around it, and each quote in it twice: "a ""b"" c"'
            ) from None
        if fields is None:
            return
        if fields:
            yield first, fields


def _table(where: str, rows: Iterator[tuple[int, list[str]]]) -> ParsedFile:
    """Return the columns of rows whose first one is the header; columns without name are left out.

    Raises:
        ValueError: a name occurs twice, or a row has more or fewer fields than the header.
    """
    _, names = next(rows, (0, []))
    _check_names(where, names)
    numbers, fields = array("q"), []
    for number, row in rows:
        if len(row) != len(names):
            raise ValueError(
                f"{where}, line {number}: {len(row)} fields, but the header has {len(names)} "
                f"({', '.join(names)}); expected as many"
            )
        numbers.append(number)
        fields.append(row)
    values = map(list, zip(*fields, strict=True)) if fields else ([] for _ in names)
    columns = {name: column for name, column in zip(names, values, strict=True) if name}
    return ParsedFile(names, columns, len(numbers), numbers)


def _parquet(where: str, file: Path, wanted: Collection[str] | None) -> ParsedFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(file).names
        _check_names(where, names)
        chosen = [name for name in names if wanted is None or name in wanted]
        table = pq.read_table(file, columns=chosen)
    except pa.ArrowException as error:
        raise ValueError(f"{where} cannot be read as Parquet: {error}") from error
    columns = {name: table[name].to_pylist() for name in chosen}
    return ParsedFile(names, columns, table.num_rows, None)


def _check_names(where: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if name and list(names).count(name) > 1})
    if twice:
        raise ValueError(f"{where} has several columns {twice[0]!r}; rename or drop all but one")


def _shown(line: str) -> str:
    text = line.strip()
    return repr(text if len(text) <= 60 else text[:60] + "…")
