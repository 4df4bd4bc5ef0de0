"""Cells of a pool and means over them: a task's score is the mean of its (split, subset) scores."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

Facts = TypeVar("Facts")
_LAST = threading.local()


def cells_of(items: pd.DataFrame) -> list[np.ndarray]:
    """Return the row numbers of each (split, hf_subset) of an item frame, in order of name."""
    return facts_of(items, _cells)


def facts_of(items: pd.DataFrame, derive: Callable[[pd.DataFrame], Facts]) -> Facts:
    """Return `derive(items)`, cached for repeated calls with the same frame.

    Without the cache, statistics of 46 models on the same 20 items would spend most time in pandas.
    The cache holds the last frame of each thread by identity, because item frames never change in
    place. `derive` must be a function of a module, not a closure, because it is the cache's key.
    """
    last = getattr(_LAST, "frame", None)
    if last is None or last() is not items:
        _LAST.frame, _LAST.facts = weakref.ref(items), {}
    known: dict[Callable[[pd.DataFrame], Facts], Facts] = _LAST.facts
    if derive not in known:
        known[derive] = derive(items)
    return known[derive]


def gold_of(items: pd.DataFrame) -> np.ndarray:
    """Return the gold scores or labels (k,) of an item frame."""
    return facts_of(items, _gold)


def _gold(items: pd.DataFrame) -> np.ndarray:
    return items["gold"].to_numpy(dtype=float)


def _cells(items: pd.DataFrame) -> list[np.ndarray]:
    codes = items.groupby(["split", "hf_subset"], sort=True).ngroup().to_numpy()
    return [np.flatnonzero(codes == code) for code in range(codes.max(initial=-1) + 1)]


def mean_of_cells(scores: Sequence[float]) -> float:
    """Return the plain mean over cells, as mteb's task score; NaN if one is undefined."""
    return float(np.mean(scores)) if len(scores) else float("nan")


def align(frame: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Return the one row per item of a pool frame, in the order of the items."""
    return frame.set_index("item_id").loc[items["item_id"]].reset_index()
