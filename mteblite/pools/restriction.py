"""Restrict a pool to a few items, whose texts a new model encodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mteblite.pools.assembly import weigh_cells
from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool, row_columns

CELL = ["split", "hf_subset"]


def of_cell(frame: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    """Return the rows of a frame that belong to a cell (split, hf_subset)."""
    return frame[(frame["split"] == cell[0]) & (frame["hf_subset"] == cell[1])]


def restrict(pool: Pool, item_ids: Sequence[str]) -> Pool:
    """Return the pool restricted to these items and the texts that they need.

    Shared rows of their cells stay (train rows, shared documents, distractors), so the outcome of
    an item of a per-item type is the same as in the full pool.

    Raises:
        ValueError: there is no id, or an id is not in the pool.
    """
    wanted = set(item_ids)
    unknown = sorted(wanted.difference(pool.items["item_id"]))
    if unknown or not wanted:
        named = f"item {unknown[0]!r}" if unknown else "an empty selection"
        raise ValueError(
            f"{pool.meta['task']}: {named} is not in its pool of {len(pool.items)} items; "
            "expected ids of this pool"
        )
    items = pool.items[pool.items["item_id"].isin(wanted)].reset_index(drop=True)
    cells = pd.MultiIndex.from_frame(items[CELL].drop_duplicates())
    frames = {name: _cut(frame, wanted, cells) for name, frame in pool.frames.items()}
    if "candidates" in frames:
        frames["documents"] = _needed_documents(frames)
    used = np.zeros(len(pool.texts), dtype=bool)
    for frame in frames.values():
        for column in row_columns(frame):
            used[frame[column].to_numpy()] = True
    final = np.cumsum(used) - 1
    meta = {**pool.meta, "replay": None} if "replay" in pool.meta else dict(pool.meta)
    return Pool(
        meta={**meta, "restricted": True},
        texts=pool.texts[used].reset_index(drop=True),
        items=weigh_cells(items),
        frames={
            name: frame.assign(**{c: final[frame[c].to_numpy()] for c in row_columns(frame)})
            for name, frame in frames.items()
        },
    )


def _cut(frame: pd.DataFrame, wanted: set[str], cells: pd.MultiIndex) -> pd.DataFrame:
    if "item_id" in frame.columns:
        kept = frame["item_id"].isin(wanted).to_numpy()
    else:
        kept = pd.MultiIndex.from_frame(frame[CELL]).isin(cells)
    return frame[kept].reset_index(drop=True)


def _needed_documents(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the shared documents and those on the candidate list of a kept item."""
    documents = frames["documents"]
    cell_of = frames["queries"][["item_id", "query_id", *CELL]]
    listed = frames["candidates"].merge(cell_of, on=["item_id", "query_id"])
    keys = [*CELL, "doc_id"]
    needed = pd.MultiIndex.from_frame(documents[keys]).isin(pd.MultiIndex.from_frame(listed[keys]))
    return documents[documents["shared"].to_numpy(dtype=bool) | needed].reset_index(drop=True)
