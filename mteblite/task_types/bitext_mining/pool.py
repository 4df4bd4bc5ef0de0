"""Pool of a BitextMining task: sentence pairs, and distractor targets shared by all of a cell.

Reads from `TaskData.cells[(split, hf_subset)]`:
    pairs: DataFrame[sentence1, sentence2];
    gold (optional): list of (i, j), target row j of source row i; absent: row i for row i;
    targets (optional): target sentences, where they are not `pairs.sentence2` row by row.

Parallel subsets (the same rows in several languages, or both directions) use the same rows for
items and distractors, so that their texts are encoded once. Subsets count as parallel when they
have equally many rows and share a column.

Frames of the pool: `pairs` [item_id, source_row, target_row, target_index]; `distractors`
[split, hf_subset, target_index, target_row] in order of target_index. A target_index is the number
of a target sentence in the cell. Distractors may include gold targets of items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from mteblite.pools.assembly import Texts, assemble, item_frame
from mteblite.pools.items import Cell, check_texts, content_ids, draw, item_ids, split_evenly
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.task_type import Frames


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the pool: pairs up to the cap, and `random_documents` distractors per cell.

    Raises:
        ValueError: a sentence is missing; names row and column.
    """
    name = data.description.task
    cells = {c: _sentences(frames, f"{name} {c}") for c, frames in data.cells.items()}
    available = {c: len(sources) for c, (sources, _, _) in cells.items()}
    quota = split_evenly(available, settings.max_items)
    keys = _row_keys(cells)
    texts, items, pairs, distractors = Texts(), [], [], []
    for cell, (sources, targets, gold) in cells.items():
        rows = draw(keys[cell], quota[cell], settings.seed, name, cell[0], "pool")
        golden = [targets[gold[r]] for r in range(len(sources))]
        ids = item_ids(cell, content_ids([sources, golden]))
        items.append(item_frame(cell, [ids[r] for r in rows]))
        pairs.append(
            pd.DataFrame(
                {
                    "item_id": [ids[r] for r in rows],
                    "source_row": texts.add([sources[r] for r in rows]),
                    "target_row": texts.add([golden[r] for r in rows]),
                    "target_index": [int(gold[r]) for r in rows],
                }
            )
        )
        number = settings.random_documents
        same_rows = len(targets) == len(keys[cell])
        target_keys = keys[cell] if same_rows else content_ids([targets])
        size = len(targets) if number is None else number
        drawn = np.sort(draw(target_keys, size, settings.seed, name, cell[0], "distractors"))
        distractors.append(
            pd.DataFrame(
                {
                    "split": cell[0],
                    "hf_subset": cell[1],
                    "target_index": drawn,
                    "target_row": texts.add([targets[r] for r in drawn]),
                }
            )
        )
    meta = {"n_available": sum(available.values())}
    frames = {"pairs": pairs, "distractors": distractors}
    return assemble(data, settings, texts, items, frames, meta)


def identify(frames: Frames, metric: str) -> tuple[list[int], list[str]]:
    """Return the rows of `pairs` and what identifies the item in each."""
    pairs, targets, gold = frames["pairs"], frames.get("targets"), frames.get("gold")
    sources = pairs["sentence1"].tolist()
    targets = pairs["sentence2"].tolist() if targets is None else list(targets)
    golden = targets if gold is None else [targets[int(j)] for _, j in gold][: len(sources)]
    return list(range(len(sources))), content_ids([sources, golden])


def _sentences(frames: Mapping[str, Any], where: str) -> tuple[list[str], list[str], list[int]]:
    pairs = frames["pairs"]
    given = frames.get("targets")
    check_texts(pairs, ["sentence1"] if given is not None else ["sentence1", "sentence2"], where)
    sources = pairs["sentence1"].tolist()
    targets = pairs["sentence2"].tolist() if given is None else list(given)
    if given is not None:
        check_texts(pd.DataFrame({"targets": targets}), ["targets"], where)
    if frames.get("gold") is None:
        return sources, targets, list(range(len(sources)))
    # as in mteb, the i-th pair of gold is that of the i-th source sentence
    gold = [int(target) for _, target in frames["gold"]]
    if len(gold) < len(sources) or max(gold, default=0) >= len(targets):
        raise ValueError(
            f"{where}: gold has {len(gold)} pairs up to target {max(gold, default=-1)} for "
            f"{len(sources)} sources and {len(targets)} targets; expected one target per source"
        )
    return sources, targets, gold[: len(sources)]


def _row_keys(
    cells: Mapping[Cell, tuple[list[str], list[str], list[int]]],
) -> dict[Cell, list[str]]:
    """Return a stable key per row; parallel cells share the keys of the first of them by name."""
    keys: dict[Cell, list[str]] = {}
    for cell in sorted(cells):
        sources, targets, gold = cells[cell]
        leader = next(
            (
                other
                for other in keys
                if other[0] == cell[0]
                and len(cells[other][0]) == len(sources)
                and any(a == b for a in cells[other][:2] for b in (sources, targets))
            ),
            None,
        )
        golden = [targets[row] for row in gold]
        keys[cell] = content_ids([sources, golden]) if leader is None else keys[leader]
    return keys
