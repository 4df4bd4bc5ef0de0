"""Make a pool of its parts: distinct texts, weighted items, frames in a canonical order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mteblite.pools.items import plain
from mteblite.pools.pool import ITEM_COLUMNS, Pool, row_columns
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings


class Texts:
    """Collects the texts of a pool, each distinct (text, prompt_type) once."""

    def __init__(self) -> None:
        """Create an empty collection."""
        self._rows: dict[tuple[str, str], int] = {}

    def add(self, texts: Sequence[str], prompt_type: str = "") -> np.ndarray:
        """Return the provisional row of each text; `assemble` replaces it by the final one."""
        rows = [self._rows.setdefault((prompt_type, text), len(self._rows)) for text in texts]
        return np.array(rows, dtype=np.int64)

    def finish(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the table, sorted by prompt_type and text, and the final row of each row."""
        keys = list(self._rows)
        order = sorted(range(len(keys)), key=keys.__getitem__)
        final = np.empty(len(keys), dtype=np.int64)
        final[order] = np.arange(len(keys))
        columns = {"text": [keys[i][1] for i in order], "prompt_type": [keys[i][0] for i in order]}
        return pd.DataFrame(columns), final


def item_frame(
    cell: tuple[str, str],
    ids: Sequence[str],
    strata: Sequence[Any] | str = "",
    gold: Sequence[float] | np.ndarray | float = np.nan,
    share: np.ndarray | None = None,
) -> pd.DataFrame:
    """Return the items of one cell (split, hf_subset).

    `strata` and `gold` (score or label) have one value per item, or one for all. `share` is the
    share of each item in its cell; None = equal shares.
    """
    split, hf_subset = cell
    share = np.full(len(ids), 1.0) if share is None else np.asarray(share, dtype=float)
    return pd.DataFrame(
        {
            "item_id": list(ids),
            "hf_subset": hf_subset,
            "split": split,
            "stratum": strata if isinstance(strata, str) else [str(s) for s in strata],
            "gold": gold,
            "pool_weight": share,
        }
    )


def weigh_cells(items: pd.DataFrame) -> pd.DataFrame:
    """Return the items with `pool_weight` summing to 1 and the same mass in every cell."""
    mass = items.groupby(["split", "hf_subset"])["pool_weight"].transform("sum")
    cells = len(items[["split", "hf_subset"]].drop_duplicates())
    return items.assign(pool_weight=items["pool_weight"] / mass / max(cells, 1))


def assemble(
    data: TaskData,
    settings: PoolSettings,
    texts: Texts,
    items: Sequence[pd.DataFrame],
    frames: Mapping[str, Sequence[pd.DataFrame]],
    meta: Mapping[str, Any],
) -> Pool:
    """Return the pool of a task from the parts of its cells.

    Args:
        data: the loaded task.
        settings: caps of the pool.
        texts: texts that the `_row` columns of the frames point into.
        items: item frames, one per cell.
        frames: further frames by name, one per cell; the rows keep their order.
        meta: facts of this type; `n_available` is required.

    Raises:
        ValueError: there is no item, or two items have the same id.
    """
    name = data.description.task
    table, final = texts.finish()
    joined = pd.concat(items, ignore_index=True) if items else pd.DataFrame(columns=ITEM_COLUMNS)
    if joined.empty:
        raise ValueError(f"{name}: its data hold no item; check its splits and subsets")
    if joined["item_id"].duplicated().any():
        twice = joined.loc[joined["item_id"].duplicated(), "item_id"].iloc[0]
        raise ValueError(f"{name}: two items have the id {twice!r}; item ids must be unique")
    joined = weigh_cells(joined.sort_values("item_id", ignore_index=True))
    joined = joined.assign(gold=joined["gold"].astype(float))
    return Pool(
        meta={
            "task": name,
            "task_type": data.description.task_type,
            "main_metric": data.description.main_metric,
            "metrics": list(data.description.metrics),
            "splits": list(data.description.splits),
            "hf_subsets": list(data.description.hf_subsets),
            "protocol": {key: plain_json(value) for key, value in data.protocol.items()},
            "max_items": settings.max_items,
            "seed": settings.seed,
            "n_dropped_relevant": 0,
            **meta,
        },
        texts=table,
        items=joined[ITEM_COLUMNS],
        frames={
            key: _final_rows(pd.concat(list(parts), ignore_index=True), final)
            for key, parts in frames.items()
            if len(parts)
        },
    )


def plain_json(value: Any) -> Any:
    """Return a value in the types of JSON, so that writing and reading a pool keeps its meta."""
    if isinstance(value, Mapping):
        return {str(key): plain_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain_json(inner) for inner in value]
    return plain(value)


def _final_rows(frame: pd.DataFrame, final: np.ndarray) -> pd.DataFrame:
    rows = {c: final[frame[c].to_numpy(dtype=np.int64)] for c in row_columns(frame)}
    return frame.assign(**rows)
