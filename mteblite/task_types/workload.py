"""How many texts and tokens a pool will hold, estimated without data.

mteb ships descriptive statistics of its tasks (`descriptive_stats/<type>/<task>.json`): numbers of
rows and mean lengths in characters per split and subset. With the caps of a pool these give the
number of its texts to within a factor of two. For retrieval tasks it is an upper bound, because
candidate lists overlap. Some classification tasks draw more train rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.registry import find_type, type_names
from mteblite.task_types.task_type import Statistics

CHARACTERS_PER_TOKEN = 4.0
"""For English in WordPiece and for Arabic in XLM-R's vocabulary, to within a fifth."""


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
    """Return what a task's pool will hold, or None where there are no statistics of it.

    Args:
        description: the task.
        statistics: mteb's descriptive statistics of the task, by split.
        settings: caps of its pool.
        max_tokens: the suite's token cap; without one, texts are not cut.
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
