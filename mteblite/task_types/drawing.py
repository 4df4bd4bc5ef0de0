"""Draw the pool of a task by the function of its type."""

from __future__ import annotations

from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.registry import find_type, type_names


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the candidate pool of a loaded task.

    With every cap None the pool is the whole task, and its score is mteb's main score.

    Args:
        data: the loaded task; `task_types/<type>/pool.py` lists the keys and columns of its cells.
        settings: caps and seed.

    Raises:
        ValueError: the type is not supported or lacks a metric, or the task holds no data or
            unusable data (a missing text, a single label ...); names task, row and column.
    """
    about = data.description
    if about.task_type not in type_names():
        raise ValueError(
            f"{about.task} is a {about.task_type} task, which mteblite cannot reduce; supported "
            f"types: {', '.join(type_names())}"
        )
    if not data.cells:
        raise ValueError(
            f"{about.task}: loaded without any (split, subset); check its splits and subsets"
        )
    task_type = find_type(about.task_type)
    task_type.check_metrics(about.task, [about.main_metric, *about.metrics])
    return task_type.draw_pool(data, settings)
