"""Pool of a Clustering task: documents stratified by label, with mteb's own sample and bootstraps.

Reads from `TaskData.cells[(split, hf_subset)]`:
    documents: DataFrame[text, labels] for all rows of the cell; labels is a list, one per level
        (a bare label counts as one level);
    sampled: row numbers that a fresh mteb task would embed, in its order; absent or all rows in
        order: mteb embeds everything.
Protocol: `seed`, `n_clusters` (number of bootstraps), `max_documents_per_cluster`,
`k_mean_batch_size`, `max_depth`; optional `rng_state`, the JSON form of the task's
`rng_state.getstate()` after loading, where loading has used it already.

mteb draws sample and bootstraps of all cells from one `random.Random(seed)`, so their values
depend on the cells before; `take_sample` and `bootstrap_rows` repeat that sequence. A pool
that is the whole task keeps mteb's document order for it; a capped pool draws its bootstraps
from a generator of its own.

Frames of the pool: `documents` [item_id, split, hf_subset, position, set, text_row,
labels (JSON)].
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from mteblite.pools.assembly import Texts, assemble, item_frame
from mteblite.pools.items import (
    Cell,
    check_texts,
    content_ids,
    draw,
    item_ids,
    plain,
    split_evenly,
)
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.hidden_labels import LEVEL_SEPARATOR
from mteblite.task_types.task_type import Frames


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the pool: documents of mteb's sample, drawn proportionally to their labels.

    Raises:
        ValueError: a text or label is missing, or a cell has a single label.
    """
    name = data.description.task
    documents = {cell: _documents(frames, f"{name} {cell}") for cell, frames in data.cells.items()}
    quota = split_evenly(
        {cell: len(frame) for cell, frame in documents.items()}, settings.max_items
    )
    whole = all(quota[cell] == len(frame) for cell, frame in documents.items())
    texts, items, parts = Texts(), [], []
    for cell, frame in documents.items():
        strata = [LEVEL_SEPARATOR.join(levels) for levels in map(level_names, frame["labels"])]
        ids = item_ids(cell, content_ids([frame["text"].tolist(), frame["labels"].tolist()]))
        drawn = draw(ids, quota[cell], settings.seed, name, *cell, "pool", strata=strata)
        rows = list(range(len(ids))) if whole else [int(row) for row in drawn]
        items.append(item_frame(cell, [ids[r] for r in rows], [strata[r] for r in rows]))
        parts.append(
            pd.DataFrame(
                {
                    "item_id": [ids[r] for r in rows],
                    "split": cell[0],
                    "hf_subset": cell[1],
                    "position": range(len(rows)),
                    "set": [int(frame["set"].iloc[r]) if whole else 0 for r in rows],
                    "text_row": texts.add([frame["text"].iloc[r] for r in rows]),
                    "labels": [frame["labels"].iloc[r] for r in rows],
                }
            )
        )
    meta = {
        "n_available": sum(len(frame) for frame in documents.values()),
        "replay": _replay(data) if whole else None,
    }
    return assemble(data, settings, texts, items, {"documents": parts}, meta)


def identify(frames: Frames, metric: str) -> tuple[list[int], list[str]]:
    """Return the rows of `documents` that mteb embeds and what identifies the item in each."""
    documents, sampled = frames["documents"], frames.get("sampled")
    rows = list(range(len(documents))) if sampled is None else [int(row) for row in sampled]
    chosen = documents.iloc[rows]
    labels = []
    for value in map(plain, chosen["labels"].tolist()):
        levels = value if isinstance(value, list) else [value]
        labels.append(json.dumps(levels, ensure_ascii=False))
    return rows, content_ids([chosen["text"].tolist(), labels])


def level_names(labels: str) -> list[str]:
    """Return the names of a document's labels (JSON list), safe to join by LEVEL_SEPARATOR."""
    return [str(label).replace(LEVEL_SEPARATOR, ">") for label in json.loads(labels)]


def bootstrap_rows(
    rng: random.Random, n_documents: int, protocol: Mapping[str, Any]
) -> Iterator[list[int]]:
    """Yield the rows of each bootstrap of one level, as mteb draws them (with replacement).

    Source: `_evaluate_clustering_bootstrapped` in mteb/abstasks/clustering.py.
    """
    for _ in range(int(protocol.get("n_clusters", 10))):
        size = int(protocol.get("max_documents_per_cluster", 16_384))
        yield rng.choices(range(n_documents), k=size)


def fresh_rng(protocol: Mapping[str, Any]) -> random.Random:
    """Return the generator of a task that has just been loaded."""
    rng = random.Random(int(protocol.get("seed", 42)))
    state = protocol.get("rng_state")
    if state is not None:
        version, internal, gauss = state
        rng.setstate((version, tuple(internal), gauss))
    return rng


def take_sample(rng: random.Random, cell: Mapping[str, Any]) -> list[int]:
    """Return the rows that mteb embeds, taking what it takes from the generator."""
    if cell["n_sampled"] is None:
        return list(range(cell["n_total"]))
    return rng.sample(range(cell["n_total"]), k=cell["n_sampled"])


def _documents(frames: Mapping[str, Any], where: str) -> pd.DataFrame:
    documents = frames["documents"]
    rows = frames.get("sampled")
    frame = documents if rows is None else documents.iloc[[int(row) for row in rows]]
    check_texts(frame, ["text"], where)
    labels = []
    for row, value in zip(frame.index, frame["labels"].tolist(), strict=True):
        levels = plain(value) if isinstance(plain(value), list) else [plain(value)]
        if not levels or any(level is None or level != level for level in levels):
            raise ValueError(
                f"{where}: row {row}, column 'labels' is {value!r}; expected a label per level"
            )
        labels.append(json.dumps(levels, ensure_ascii=False))
    if len(set(labels)) < 2:
        raise ValueError(
            f"{where}: all {len(labels)} documents have the same label; clustering needs two labels"
        )
    sets = frame["set"].tolist() if "set" in frame else [0] * len(frame)
    return pd.DataFrame({"text": frame["text"].tolist(), "labels": labels, "set": sets})


def _replay(data: TaskData) -> list[dict[str, Any]]:
    """Say per cell, in mteb's order, what its sample was drawn from."""
    cells = []
    for (split, hf_subset), frames in data.cells.items():
        total = len(frames["documents"])
        rows: Sequence[int] | None = frames.get("sampled")
        in_order = rows is None or [int(row) for row in rows] == list(range(total))
        cells.append(
            {
                "split": split,
                "hf_subset": hf_subset,
                "n_total": total,
                "n_sampled": None if rows is None or in_order else len(rows),
            }
        )
    return cells


def cell_key(cell: Mapping[str, Any]) -> Cell:
    """Return (split, hf_subset) of a replay entry."""
    return str(cell["split"]), str(cell["hf_subset"])
