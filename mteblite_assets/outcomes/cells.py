"""Cells of a pool and means over them: a task's score is the mean of its (split, subset) scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd


def cells_of(items: pd.DataFrame) -> Iterator[np.ndarray]:
    """Yield the row numbers of each (split, hf_subset) of an item frame, cells in order of name."""
    codes = items.groupby(["split", "hf_subset"], sort=True).ngroup().to_numpy()
    for code in range(codes.max(initial=-1) + 1):
        yield np.flatnonzero(codes == code)


def mean_of_cells(scores: Sequence[float]) -> float:
    """Return the plain mean over cells, as mteb's task score; NaN if one is undefined."""
    return float(np.mean(scores)) if len(scores) else float("nan")


def align(frame: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Return the one row per item of a pool frame, in the order of the items."""
    return frame.set_index("item_id").loc[items["item_id"]].reset_index()
