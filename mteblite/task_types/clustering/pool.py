"""Pool of a Clustering task: documents stratified by label, with mteb's own sample and bootstraps.

Reads from `TaskData.cells[(split, hf_subset)]`:
    documents: DataFrame[text, labels] for all rows of the cell; labels is a list, one per level
        (a bare label counts as one level);
    sampled: row numbers that a fresh mteb task would embed, in its order; absent or all rows in
        order: mteb embeds everything.
Protocol: `seed`, `n_clusters` (number of bootstraps), `max_documents_per_cluster`,
`k_mean_batch_size`, `max_depth`; optional `rng_state`, the JSON form of the task's
`rng_state.getstate()` after loading, where loading has used it already.

mteb draws samples and bootstraps of all cells from one `random.Random(seed)`, so that they depend
on the cells before. A pool that is the whole task keeps mteb's order of documents and repeats these
draws. A capped pool draws its bootstraps from a separate generator for each cell.

Frames of the pool: `documents` [item_id, split, hf_subset, position, set, text_row,
labels (JSON)].
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mteblite.pools.assembly import Texts, assemble, item_frame
from mteblite.pools.items import check_texts, content_ids, draw, item_ids, plain, split_evenly
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
    labels = [json.dumps(_levels(v), ensure_ascii=False) for v in chosen["labels"].tolist()]
    return rows, content_ids([chosen["text"].tolist(), labels])


def _levels(labels: Any) -> list[Any]:
    """Return the labels of a document as a list; a bare label is one level."""
    found = plain(labels)
    return found if isinstance(found, list) else [found]


def level_names(labels: str) -> list[str]:
    """Return the names of a document's labels (JSON list), safe to join by LEVEL_SEPARATOR."""
    return [str(label).replace(LEVEL_SEPARATOR, ">") for label in json.loads(labels)]


def label_levels(
    labels: Sequence[Sequence[Any]], protocol: Mapping[str, Any]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield per level the (n,) labels of the documents, and the (n,) mask of those mteb clusters.

    mteb marks a document without a label at a level by -1 and leaves it out. Beside labels that
    are strings numpy makes the mark the string "-1". mteb then keeps these documents as a cluster,
    and so does this function, because scores depend on it.
    """
    depth = max(map(len, labels))
    if protocol.get("max_depth") is not None:
        depth = min(depth, int(protocol["max_depth"]))
    for level in range(depth):
        named = np.array([path[level] if len(path) > level else -1 for path in labels])
        yield named, np.array([label != -1 for label in named])


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
    """Return the generator in its state after the task was loaded."""
    rng = random.Random(int(protocol.get("seed", 42)))
    state = protocol.get("rng_state")
    if state is not None:
        version, internal, gauss = state
        rng.setstate((version, tuple(internal), gauss))
    return rng


def _documents(frames: Mapping[str, Any], where: str) -> pd.DataFrame:
    documents = frames["documents"]
    rows = frames.get("sampled")
    frame = documents if rows is None else documents.iloc[[int(row) for row in rows]]
    check_texts(frame, ["text"], where)
    labels = []
    for row, value in zip(frame.index, frame["labels"].tolist(), strict=True):
        levels = _levels(value)
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
    """Return the sizes of each cell and of its sample (None: all in order), in mteb's order."""
    cells = []
    for (split, hf_subset), frames in data.cells.items():
        total = len(frames["documents"])
        rows = [int(row) for row in frames.get("sampled", range(total))]
        cells.append(
            {
                "split": split,
                "hf_subset": hf_subset,
                "n_total": total,
                "n_sampled": None if rows == list(range(total)) else len(rows),
            }
        )
    return cells
