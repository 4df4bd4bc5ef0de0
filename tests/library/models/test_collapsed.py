"""Whether all texts of a pool got one vector, whatever the precision."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mteblite.models.pool_vectors import collapse, collapse_warning

RNG = np.random.default_rng(0)
ONE = RNG.normal(size=16).astype(np.float32)


def pool(*kinds: str) -> Any:
    return SimpleNamespace(texts=pd.DataFrame({"prompt_type": list(kinds)}))


def half(rows: np.ndarray, bits: int) -> np.ndarray:
    """Rows rounded to fewer bits of the mantissa, as of half precision, one bit of noise each."""
    mask = np.uint32(0xFFFFFFFF << bits & 0xFFFFFFFF)
    noisy = rows * (1 + RNG.choice([0, 2.0 ** (bits - 23)], size=rows.shape))
    return (noisy.astype(np.float32).view(np.uint32) & mask).view(np.float32)


@pytest.mark.parametrize("bits", [0, 13, 16])
def test_noise_of_a_precision_is_no_difference(bits: int) -> None:
    rows = half(np.tile(ONE, (20, 1)), bits)
    assert collapse(pool(*["query"] * 20), rows) == "the same vector"
    rows[7] *= 1.1
    assert collapse(pool(*["query"] * 20), rows) == ""


def test_similar_vectors_are_not_equal() -> None:
    rows = ONE + 1e-3 * RNG.normal(size=(20, 16)).astype(np.float32)
    assert collapse(pool(*[""] * 20), rows) == ""


def test_one_kind_of_texts_is_enough_and_few_texts_are_not() -> None:
    kinds = ["query"] * 8 + ["document"] * 20
    rows = RNG.normal(size=(28, 16)).astype(np.float32)
    assert collapse(pool(*kinds), rows) == ""
    rows[:8] = 0
    assert collapse(pool(*kinds), rows) == "the zero vector"
    assert collapse(pool(*kinds[1:]), rows[1:]) == ""


def test_the_warning_names_the_tasks() -> None:
    assert collapse_warning({}, 3) == []
    (some,) = collapse_warning({"B": "the same vector", "A": "the same vector"}, 3)
    assert "all texts of A, B got the same vector" in some
    (every,) = collapse_warning({"A": "the zero vector"}, 1)
    assert "all texts of every task got the zero vector" in every
