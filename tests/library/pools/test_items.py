"""Ids, even and proportional splits, and draws."""

from __future__ import annotations

import numpy as np
import pytest

from mteblite.pools.items import (
    check_numbers,
    content_ids,
    draw,
    split_evenly,
    split_proportionally,
)


def test_ids_come_from_content_and_number_equal_rows() -> None:
    ids = content_ids([["a", "b", "a"], [1, 2, 1]])
    assert [i.split("-")[1] for i in ids] == ["0", "0", "1"]
    assert ids[0].split("-")[0] == ids[2].split("-")[0]
    assert set(ids) == set(content_ids([["b", "a", "a"], [2, 1, 1]]))
    # columns are kept apart, and so are types
    assert content_ids([["ab"], ["c"]]) != content_ids([["a"], ["bc"]])
    assert content_ids([["1"]]) != content_ids([[1]])
    assert content_ids([np.array([1, 2])]) == content_ids([[1, 2]])


def test_even_split_passes_on_what_is_not_there() -> None:
    assert split_evenly({"a": 2, "b": 50, "c": 50}, 30) == {"a": 2, "b": 14, "c": 14}
    assert split_evenly({"a": 50, "b": 50}, 5) == {"a": 3, "b": 2}
    assert split_evenly({"a": 3, "b": 0}, 10) == {"a": 3, "b": 0}
    assert split_evenly({"a": 3, "b": 4}, None) == {"a": 3, "b": 4}


@pytest.mark.parametrize("total", range(0, 121, 7))
def test_proportional_split_is_exact_and_fair(total: int) -> None:
    strata = {"a": 70, "b": 25, "c": 4, "d": 1}
    sizes = split_proportionally(strata, total)
    assert sum(sizes.values()) == min(total, 100)
    assert all(sizes[key] <= strata[key] for key in strata)
    if total >= 4:
        assert min(sizes.values()) >= 1
    if total <= 100:
        assert all(abs(sizes[key] - total * strata[key] / 100) <= 2 for key in strata)


def test_draws_depend_on_ids_and_keys_alone() -> None:
    ids = [f"i{n:03d}" for n in range(50)]
    order = np.random.default_rng(0).permutation(50)
    first = [ids[row] for row in draw(ids, 10, 0, "task")]
    mixed = [ids[n] for n in order]
    assert first == [mixed[row] for row in draw(mixed, 10, 0, "task")] == sorted(first)
    assert first != [ids[row] for row in draw(ids, 10, 1, "task")]
    assert len(draw(ids, 99, 0)) == 50
    strata = ["x"] * 40 + ["y"] * 10
    rows = draw(ids, 10, 0, "task", strata=strata)
    assert sum(strata[row] == "y" for row in rows) == 2


def test_numbers_are_checked() -> None:
    assert check_numbers(["1", 2, 0.5], "gold", "T").tolist() == [1, 2, 0.5]
    with pytest.raises(ValueError, match="T: row 1, column 'gold' is 'high'"):
        check_numbers([1, "high"], "gold", "T")
