"""How many texts and tokens a pool will hold, before any data is there.

mteb ships descriptive statistics of its tasks (`descriptive_stats/<type>/<task>.json`): numbers of
rows and mean lengths in characters per split and subset. From these and the caps of a pool its
texts follow, to within a factor of two: candidate lists of queries overlap (the numbers of
retrieval tasks are upper bounds), and some classification tasks draw more train rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.registry import find_type, type_names
from mteblite.task_types.task_type import Statistics

CHARACTERS_PER_TOKEN = 4.0
"""Of English in WordPiece and of Arabic in XLM-R's vocabulary alike, within a fifth."""


@dataclass(frozen=True)
class Workload:
    """Distinct texts of a pool, and their tokens."""

    texts: int
    tokens: int


def estimate_workload(
    description: TaskDescription,
    statistics: Statistics | None,
    settings: PoolSettings,
    max_tokens: int | None,
) -> Workload | None:
    """Return what a task's pool will hold, or None where nothing is known of it.

    Args:
        description: the task.
        statistics: mteb's descriptive statistics of it, by split.
        settings: caps of its pool.
        max_tokens: the suite's token cap; without one, texts count whole.
    """
    cells = {
        (split, subset): known
        for split in description.splits
        for subset in description.hf_subsets
        if (known := _cell_statistics(statistics, split, subset)) is not None
    }
    if not cells or description.task_type not in type_names():
        return None
    try:
        found = find_type(description.task_type).text_kinds(cells, settings)
    except (KeyError, TypeError):  # an older form of the statistics
        return None
    texts = sum(n for n, _ in found)
    cap = max_tokens or math.inf
    tokens = sum(n * min(max(c / CHARACTERS_PER_TOKEN, 1.0), cap) for n, c in found)
    return Workload(round(texts), round(tokens))


def _cell_statistics(statistics: Statistics | None, split: str, subset: str) -> Statistics | None:
    of_split = (statistics or {}).get(split)
    if of_split is None:
        return None
    subsets = of_split.get("hf_subset_descriptive_stats")
    return of_split if subsets is None else subsets.get(subset)
