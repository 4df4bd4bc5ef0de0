"""Pool of a PairClassification task: as many positive as negative pairs.

Reads from `TaskData.cells[(split, hf_subset)]`:
    pairs: DataFrame[text1, text2, label] with label 0 or 1.
Protocol (optional): `input1_prompt_type`, `input2_prompt_type` of asymmetric tasks.

The balance changes the share of positives, on which average precision depends. `pool_weight`
therefore gives each label the mass that it has in the whole cell (its label prior), and statistics
on the pool are weighted by it.

Frames of the pool: `pairs` [item_id, first_row, second_row].
"""

from __future__ import annotations

import numpy as np

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
from mteblite.task_types.sts.pool import pair_frame
from mteblite.task_types.task_type import Frames


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the pool: pairs drawn evenly from both labels, weighted back to the label prior.

    Raises:
        ValueError: a text is missing, or a label is not 0 or 1; names row and column.
    """
    name = data.description.task
    quota = split_evenly({c: len(f["pairs"]) for c, f in data.cells.items()}, settings.max_items)
    texts, items, pairs, prior = Texts(), [], [], {}
    for cell, frames in data.cells.items():
        frame, where = frames["pairs"], f"{name} {cell}"
        check_texts(frame, ["text1", "text2"], where)
        labels = _binary(check_numbers(frame["label"].tolist(), "label", where), where)
        ids = item_ids(cell, identify(frames, data.description.main_metric)[1])
        rows = _balanced(ids, labels, quota[cell], settings.seed, name, *cell)
        chosen = [ids[r] for r in rows]
        share = prior_shares(labels, labels[rows])
        items.append(item_frame(cell, chosen, labels[rows].tolist(), labels[rows], share))
        pairs.append(pair_frame(texts, chosen, frame.iloc[rows], data))
        prior["/".join((cell[1], cell[0]))] = float(labels.mean()) if len(labels) else float("nan")
    n_available = sum(len(frames["pairs"]) for frames in data.cells.values())
    meta = {"n_available": n_available, "label_prior": prior}
    return assemble(data, settings, texts, items, {"pairs": pairs}, meta)


def identify(frames: Frames, metric: str) -> tuple[list[int], list[str]]:
    """Return the rows of `pairs` and what identifies the item in each."""
    pairs = frames["pairs"]
    labels = [int(label) for label in pairs["label"]]
    columns = [pairs["text1"].tolist(), pairs["text2"].tolist(), labels]
    return list(range(len(pairs))), content_ids(columns)


def prior_shares(population: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """Return (k,) positive shares that give each label the mass it has in the population.

    Args:
        population: (n,) labels 0 or 1 of the whole cell.
        sample: (k,) labels of the pairs drawn; shares are equal when it is the population.
    """
    if len(sample) == len(population):
        return np.ones(len(sample))
    shares = np.empty(len(sample))
    for label in (0, 1):
        mask = sample == label
        if mask.any():
            shares[mask] = np.mean(population == label) / mask.sum()
    return shares


def _binary(labels: np.ndarray, where: str) -> np.ndarray:
    wrong = np.flatnonzero(~np.isin(labels, (0, 1)))
    if len(wrong):
        raise ValueError(
            f"{where}: row {wrong[0]}, column 'label' is {labels[wrong[0]]:g}; expected 0 or 1"
        )
    return labels.astype(np.int64)


def _balanced(ids: list[str], labels: np.ndarray, number: int, *keys: str | int) -> np.ndarray:
    sizes = split_evenly({label: int(np.sum(labels == label)) for label in (0, 1)}, number)
    parts = []
    for label, size in sizes.items():
        members = np.flatnonzero(labels == label)
        drawn = draw([ids[m] for m in members], size, *keys, "pool", f"label{label}")
        parts.append(members[drawn])
    return np.concatenate(parts)
