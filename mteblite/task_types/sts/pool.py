"""Pool of an STS task: pairs with a gold similarity, in five gold bins.

Reads from `TaskData.cells[(split, hf_subset)]`:
    pairs: DataFrame[text1, text2, gold] with numeric gold.
Protocol (optional): `input1_prompt_type`, `input2_prompt_type` of asymmetric tasks.

Frames of the pool: `pairs` [item_id, first_row, second_row].
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.pools.assembly import Texts, assemble, item_frame
from mteblite.pools.items import (
    check_numbers,
    check_texts,
    content_ids,
    draw,
    item_ids,
    split_evenly,
)
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.task_type import Frames

GOLD_BINS = 5


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the pool: pairs drawn proportionally from five gold bins of equal width.

    Raises:
        ValueError: a text or a gold score is missing; names row and column.
    """
    name = data.description.task
    quota = split_evenly({c: len(f["pairs"]) for c, f in data.cells.items()}, settings.max_items)
    texts, items, pairs = Texts(), [], []
    for cell, frames in data.cells.items():
        frame, where = frames["pairs"], f"{name} {cell}"
        check_texts(frame, ["text1", "text2"], where)
        gold = check_numbers(frame["gold"].tolist(), "gold", where)
        ids = item_ids(cell, identify(frames, data.description.main_metric)[1])
        bins = gold_bins(gold)
        rows = draw(ids, quota[cell], settings.seed, name, *cell, "pool", strata=bins)
        chosen = [ids[r] for r in rows]
        items.append(item_frame(cell, chosen, [bins[r] for r in rows], gold[rows]))
        pairs.append(pair_frame(texts, chosen, frame.iloc[rows], data))
    n_available = sum(len(frames["pairs"]) for frames in data.cells.values())
    return assemble(data, settings, texts, items, {"pairs": pairs}, {"n_available": n_available})


def identify(frames: Frames, metric: str) -> tuple[list[int], list[str]]:
    """Return the rows of `pairs` and what identifies the item in each."""
    pairs = frames["pairs"]
    gold = [float(value) for value in pairs["gold"]]
    columns = [pairs["text1"].tolist(), pairs["text2"].tolist(), gold]
    return list(range(len(pairs))), content_ids(columns)


def gold_bins(gold: np.ndarray) -> list[str]:
    """Return the bin of each gold score, `bin0` (lowest) to `bin4`; one bin if all are equal."""
    if len(gold) == 0:
        return []
    low, high = gold.min(), gold.max()
    width = (high - low) / GOLD_BINS
    if width <= 0:
        return ["bin0"] * len(gold)
    numbers = np.minimum(((gold - low) / width).astype(int), GOLD_BINS - 1)
    return [f"bin{number}" for number in numbers]


def pair_frame(texts: Texts, ids: list[str], pairs: pd.DataFrame, data: TaskData) -> pd.DataFrame:
    """Return the frame `pairs` of one cell; adds the texts of its pairs to `texts`."""
    prompts = [str(data.protocol.get(f"input{n}_prompt_type") or "") for n in (1, 2)]
    return pd.DataFrame(
        {
            "item_id": ids,
            "first_row": texts.add(pairs["text1"].tolist(), prompts[0]),
            "second_row": texts.add(pairs["text2"].tolist(), prompts[1]),
        }
    )
