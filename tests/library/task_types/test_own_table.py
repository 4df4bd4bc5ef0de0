"""One table of own data: every format reads alike, and every fault has its file and row."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.own_tables import write_table

from mteblite.task_types.own_files import SUFFIXES
from mteblite.task_types.own_parsing import as_stored
from mteblite.task_types.own_table import OwnTable

TEXTS = [
    '"opened, never closed',
    '"pair" inside',
    '5" disk',
    "a\u2028b\u0085c",
    "NA",
    "null",
    "قهوة",
]
TEXT_FORMATS = [suffix for suffix in SUFFIXES if suffix != ".parquet"]


def read(file: Path) -> OwnTable:
    return OwnTable.read("Ours", file)


def of_values(folder: Path, values: list[Any], suffix: str = ".jsonl") -> OwnTable:
    return read(write_table(folder / f"t{suffix}", [{"x": value} for value in values]))


def refused(file: Path, content: bytes) -> str:
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"^Ours: {file}") as caught:
        read(file)
    return str(caught.value).removeprefix(f"Ours: {file}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_holds_the_same_rows(tmp_path: Path, suffix: str) -> None:
    rows = [{"_id": f"00{n}", "text": text} for n, text in enumerate(TEXTS)]
    table = read(write_table(tmp_path / f"corpus{suffix}", rows))
    assert table.texts("text") == TEXTS
    assert table.ids("_id", "id") == [row["_id"] for row in rows]
    assert table.place(2) == (
        "row 3" if suffix == ".parquet" else f"line {3 + ('json' not in suffix)}"
    )


@pytest.mark.parametrize("suffix", [".jsonl", ".tsv", ".csv"])
def test_a_byte_order_mark_carriage_returns_and_blank_lines_change_nothing(
    tmp_path: Path, suffix: str
) -> None:
    file = write_table(tmp_path / f"t{suffix}", [{"x": "a"}, {"x": "b"}])
    content = file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n\r\n")
    file.write_bytes(b"\xef\xbb\xbf" + content)
    table = read(file)
    assert table.texts("x") == ["a", "b"]
    assert table.place(1) == ("line 3" if suffix == ".jsonl" else "line 5")


@pytest.mark.parametrize("suffix", TEXT_FORMATS)
def test_a_file_that_is_no_utf_8_text_is_named(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"t{suffix}"
    assert "Git LFS pointer" in refused(file, b"version https://git-lfs.github.com/spec/v1\n")
    if suffix.endswith(".gz"):
        assert "cannot be read: Not a gzipped file" in refused(file, b"plain")
        return
    assert "is empty" in refused(file, b"")
    assert "holds no row" in refused(file, b"\n\n")
    assert "UTF-16" in refused(file, '{"x": "a"}\n'.encode("utf-16"))
    assert "UTF-16" in refused(file, '{"x": "a"}\n'.encode("utf-16-le"))
    assert ", line 2: byte 4 of the line, 0xe9" in refused(
        file, b"x\ncaf\xe9\n" if "json" not in suffix else b'{}\n{"x\xe9'
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl", '{"x": "a"}\n{"x": "b"},\n', r"line 2: .* is no JSON .*without a comma"),
        ("t.jsonl", '[{"x": "a"}]\n', "line 1: .* is a JSON list; expected one JSON object per"),
        ("t.csv", 'x,y\na,"b\nc,d\n', "line 2: unexpected end of data, read up to line 3"),
        ("t.csv", 'x,y\n"a"b,c\n', "line 2: ',' expected after"),
        ("t.csv", 'x,y\n"a\nb",c\nd\n', r"line 4: 1 fields, but the header has 2 \(x, y\)"),
        ("t.tsv", "x\ty\na\tb\tc\n", "line 2: 3 fields, but the header has 2"),
        ("t.csv", "x,x,y\na,b\n", "several columns 'x'"),
        ("t.parquet", "no Parquet at all", "cannot be read as Parquet"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_named_with_its_line(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=rf"^Ours: .*{name}.*{message}"):
        read(tmp_path / name)


def test_csv_holds_line_breaks_commas_and_an_index_without_name(tmp_path: Path) -> None:
    long = "w " * 200_000
    rows = [{"": "0", "x": 'a "b", c\nd'}, {"": "1", "x": long}]
    assert read(write_table(tmp_path / "t.csv", rows)).texts("x") == ['a "b", c\nd', long]


def test_an_absent_column_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("_id;text\n1;a\n")
    with pytest.raises(ValueError, match=r"no column 'text'; it has: _id;text; .* by commas"):
        read(tmp_path / "t.csv").texts("text")
    with pytest.raises(ValueError, match=r"no column 'a' or 'b'; it has: x$"):
        of_values(tmp_path, ["c"]).ids("a", "b")


@pytest.mark.parametrize("value", [["a"], {"a": "b"}, True, None, 7, 0.5])
def test_a_value_among_texts_that_is_none_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ValueError, match=r"t.jsonl, line 2: column 'x' is .*; expected a text"):
        of_values(tmp_path, ["a", value]).texts("x")
    if not isinstance(value, int | float) or value is True:
        with pytest.raises(ValueError, match=r"t.parquet, row 1: column 'x' is .*; expected a t"):
            of_values(tmp_path, [value], ".parquet").texts("x")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_numbers_alone_are_texts_and_said_so(tmp_path: Path, suffix: str) -> None:
    table = of_values(tmp_path, [12, 2**53 + 1], suffix)
    assert table.texts("x") == ["12", "9007199254740993"]
    assert table.notes == [f"t{suffix}: column 'x' holds numbers alone, which are read as texts"]


@pytest.mark.parametrize("suffix", [".jsonl", ".tsv", ".csv", ".parquet"])
def test_empty_texts_are_counted_and_refused_only_if_all_are(tmp_path: Path, suffix: str) -> None:
    rows = [{"n": n, "x": text} for n, text in enumerate(["a", "", ""])]
    table = read(write_table(tmp_path / f"t{suffix}", rows))
    assert table.texts("x") == ["a", "", ""]
    assert table.notes[0].endswith("empty 'x', 2 in all: encoded as they are, as in mteb")
    with pytest.raises(ValueError, match="every 'x' is empty"):
        read(write_table(tmp_path / f"t{suffix}", rows[1:])).texts("x")


def test_a_missing_text_is_empty_where_it_may_be_missing(tmp_path: Path) -> None:
    table = of_values(tmp_path, ["a", None, None])
    assert table.texts("x", missing=True) == ["a", "", ""]
    with pytest.raises(ValueError, match=r"line 3: column 'x' is None"):
        table.texts("x", missing=[True, True, False])
    with pytest.raises(ValueError, match=r"line 1: column 'x' is True"):
        of_values(tmp_path, [True, None]).texts("x", missing=True)


@pytest.mark.parametrize("values", [[1.5, math.nan], [1, None]])
def test_a_gap_among_numbers_is_no_text(tmp_path: Path, values: list[Any]) -> None:
    for suffix, place in ((".jsonl", "line 2"), (".parquet", "row 2")):
        with pytest.raises(ValueError, match=f"{place}: column 'x' is (nan|None)"):
            of_values(tmp_path, values, suffix).texts("x")


def test_control_characters_stay_and_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    assert of_values(tmp_path, ["a\0b"]).texts("x") == ["a\0b"]
    (tmp_path / "t.jsonl").write_text('{"x": "fine"}\n{"x": "a \\ud83d b"}\n')
    message = r"t.jsonl, line 2: column 'x' has '\\ud83d' at character 3, half of a surrogate"
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "t.jsonl").texts("x")


def test_quotes_around_a_tsv_field_are_noted(tmp_path: Path) -> None:
    table = of_values(tmp_path, ['"all"', "none"], ".tsv")
    assert table.texts("x") == ['"all"', "none"]
    assert "in TSV quotes are part of the text" in table.notes[0]


def test_ids_are_exact(tmp_path: Path) -> None:
    whole = [7, 2**53 + 1, 2**63, 12345678901234567890123]
    assert of_values(tmp_path, ["007", *whole]).ids("x") == ["007", *map(str, whole)]
    assert of_values(tmp_path, whole[:2], ".parquet").ids("x") == ["7", "9007199254740993"]


@pytest.mark.parametrize("value", [1.0, True, None, [1], ""])
def test_what_is_no_id_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ValueError, match=r"line 2: column 'x' is .*; expected an id"):
        of_values(tmp_path, ["a", value]).ids("x")
    write_table(tmp_path / "t.jsonl", [{"x": ["a", 1]}, {"x": []}, {"x": ["b", value]}])
    with pytest.raises(ValueError, match=r"line 3: column 'x' is .*; expected ids: .* in it"):
        read(tmp_path / "t.jsonl").lists_of_ids("x")


@pytest.mark.parametrize("value", ["high", "1,5", "", None, [1], math.nan, math.inf, "inf", "nan"])
def test_what_is_no_finite_number_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ValueError, match=r"line 2: column 'x' is .*; expected a finite number"):
        of_values(tmp_path, [1, value]).numbers("x")


@pytest.mark.parametrize("value", [0.5, None, ["a"], {"a": 1}, math.nan, ""])
def test_what_is_no_label_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ValueError, match=r"line 2: column 'x' is .*; expected a label"):
        of_values(tmp_path, ["a", value]).labels("x")


def test_every_parquet_type_of_text_is_text(tmp_path: Path) -> None:
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        column = pa.array(["a", "b", None], pa.string()).cast(kind)
        pq.write_table(pa.table({"x": column}), tmp_path / "t.parquet")
        assert read(tmp_path / "t.parquet").texts("x", missing=True) == ["a", "b", ""]
        pq.write_table(pa.table({"x": column.slice(0, 2)}), tmp_path / "t.parquet")
        assert read(tmp_path / "t.parquet").labels("x") == ["a", "b"]


def test_fractions_in_json_are_those_whose_hashes_are_stored() -> None:
    rng = np.random.default_rng(0)
    numbers = [
        round(float(x), d) for d in (1, 2, 3, 6, 15) for x in rng.normal(0, 10 ** (d - 2), 200)
    ]
    lines = "".join(json.dumps({"x": x}) + "\n" for x in numbers)
    stored = pd.read_json(io.StringIO(lines), lines=True, dtype=False)["x"].tolist()
    assert [as_stored(json.dumps(x)) for x in numbers] == stored
    assert stored != numbers
    assert as_stored("-1.5E-2") == -0.015
