"""Draw the pool of a task: one module per task type does it; this one picks the module."""

from __future__ import annotations

import importlib

from mteblite.pools.metric_names import check_metrics
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings

MODULES = {
    "Retrieval": "retrieval.pool",
    "Reranking": "retrieval.reranking_pool",
    "Classification": "classification.pool",
    "PairClassification": "pair_classification.pool",
    "STS": "sts.pool",
    "Clustering": "clustering.pool",
    "Summarization": "summarization.pool",
    "BitextMining": "bitext_mining.pool",
}


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the candidate pool of a loaded task.

    With every cap None the pool is the whole task, so that scoring it gives mteb's main score.

    Args:
        data: the loaded task; which keys and columns each type needs is said at the head of
            `pools/<type>.py`.
        settings: caps and seed.

    Raises:
        ValueError: the type has no pool, the task holds no data, or its data are unusable (a
            missing text, a single label ...), or its type lacks a metric asked for; names task,
            row and column.
    """
    name, task_type = data.description.task, data.description.task_type
    if task_type not in MODULES:
        raise ValueError(
            f"{name} is a {task_type} task, which mteblite cannot reduce; supported types: "
            f"{', '.join(MODULES)}"
        )
    if not data.cells:
        raise ValueError(
            f"{name}: loaded without any (split, subset); check its splits and subsets"
        )
    check_metrics(name, task_type, [data.description.main_metric, *data.description.metrics])
    module = importlib.import_module(f"mteblite.task_types.{MODULES[task_type]}")
    pool: Pool = module.draw_pool(data, settings)
    return pool
