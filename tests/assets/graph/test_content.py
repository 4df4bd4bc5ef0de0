"""Data versions by content: what counts as a change and what does not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mteblite_assets.graph.content import content_version, text_version


@pytest.fixture
def rows() -> pd.DataFrame:
    return pd.DataFrame(
        {"item": ["b", "a"], "outcome": [0.25, np.nan], "n": [1, 2], "flag": [True, False],
         "many": [[1.0, 2.0], [3.0]], "text": [None, "x"]}
    )  # fmt: skip


def _version(rows: pd.DataFrame, ignore: tuple[str, ...] = ()) -> str:
    return content_version({"t": rows}, ignore)


def test_order_of_rows_columns_and_tables_does_not_count(rows):
    assert _version(rows) == _version(rows.iloc[::-1])
    assert _version(rows) == _version(rows[sorted(rows.columns)])
    two = {"a": rows, "b": rows.head(1)}
    assert content_version(two) == content_version(dict(reversed(two.items())))


def test_noise_below_the_ninth_decimal_does_not_count(rows):
    nudged = rows.assign(outcome=rows["outcome"] + 1e-13, many=[[1.0 + 1e-13, 2.0], [3.0]])
    assert _version(rows) == _version(nudged)
    zero = pd.DataFrame({"x": [0.0]})
    assert _version(zero) == _version(-zero)


def test_lists_and_arrays_are_the_same(rows):
    arrays = rows.assign(many=[np.array([1.0, 2.0]), np.array([3.0])])
    assert _version(rows) == _version(arrays)


@pytest.mark.parametrize("change", [
    {"outcome": [0.2500001, np.nan]}, {"outcome": [0.25, 0.0]}, {"item": ["b", "c"]},
    {"n": [1, 3]}, {"flag": [True, True]}, {"many": [[2.0, 1.0], [3.0]]}, {"text": ["", "x"]},
])  # fmt: skip
def test_content_counts(rows, change):
    assert _version(rows) != _version(rows.assign(**change))


def test_number_of_equal_rows_counts(rows):
    assert _version(rows) != _version(pd.concat([rows, rows.head(1)]))
    assert _version(rows.head(0)) != _version(rows)


def test_which_row_has_which_value_counts(rows):
    swapped = rows.assign(n=[2, 1])
    assert _version(rows) != _version(swapped)


def test_name_of_table_counts_and_ignored_columns_do_not(rows):
    assert content_version({"t": rows}) != content_version({"u": rows})
    timed = rows.assign(seconds=[1.0, 2.0])
    assert _version(timed, ("seconds",)) == _version(rows, ("seconds",))
    assert _version(timed) != _version(rows)


def test_text_version():
    assert text_version("a") == text_version("a") != text_version("b")
    assert len(text_version("a")) == 16
