"""Tables: numbers whole and aligned, lines within the width."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from mteblite_assets.cli.tables import print_table

ROWS = [
    {"model": "package:multilingual-e5-small-q4-first11", "note": None, "mae": 1.5, "n": 3},
    {"model": "模型" * 20, "note": None, "mae": 12.25, "n": 12345},
    {"model": "x", "note": None, "mae": None, "n": 4},
]


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_numbers_of_a_column_have_the_same_decimals(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"a": 1.3, "b": 1.0, "c": 1e-9}, {"a": 10.52, "b": 0.7933, "c": 2.0}])
    assert [line.split() for line in lines(capsys)[1:]] == [
        ["1.30", "1.0000", "1e-09"],
        ["10.52", "0.7933", "2"],
    ]


@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 200])
def test_a_line_fits_and_no_number_is_broken(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(ROWS, drop=("n",))
    table = [line for line in lines(capsys) if not line.startswith("(")]
    assert max(map(cell_len, table)) <= max(width, 23)  # 12 of the model, 5 of mae, gaps
    assert any(line.endswith("1.50") or " 1.50 " in line for line in table)
    assert any("12.25" in line for line in table)


def test_what_is_left_out_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_table(ROWS, drop=("n",))
    found = lines(capsys)
    assert "note" not in found[0]  # an empty column is no loss
    assert found[-1] == "(not shown in 30 columns: n)"
    assert "packag" in found[1]
    assert "irst11" in found[1]


def test_a_pipe_has_no_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(ROWS, drop=("n",))
    assert ROWS[0]["model"] in lines(capsys)[1]
