"""A small release made in memory: one task of each type, drawn, selected and calibrated."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.releases.released_task import ReleasedTask, release_task
from mteblite.releases.suite_release import SuiteRelease
from mteblite.seeds import generator
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.registry import task_kind
from support.pool_tasks import CAPS, TYPES, task

K = 7


def small_release() -> SuiteRelease:
    """Return a release of one task per type, named after it; the same at every call."""
    tasks = tuple(released(kind) for kind in sorted(TYPES))
    targets = ["macro", "mean", *(f"task:{t.task}" for t in tasks),
               *(f"type:{t.description.task_type}" for t in tasks)]  # fmt: skip
    intervals = pd.DataFrame({
        "target": targets, "half_width": 0.1, "interval_method": "conformal_family",
        "n_families": 12, "level": 0.9,
    })  # fmt: skip
    return SuiteRelease(
        suite="small", variant="random/mean/random", max_tokens=None, created_from="0123",
        versions={"mteb": "2", "mteblite": "0"}, tasks=tasks, intervals=intervals, joint=None,
        document="# Selection\n",
    )  # fmt: skip


def data_of(kind: str) -> TaskData:
    """Return the data of the release's task of a type."""
    from dataclasses import replace

    made = task(kind)
    described = replace(made.description, task=f"Small{kind}", dataset_revision="r1")
    return replace(made, description=described)


def whole_pool(kind: str) -> Pool:
    """Return the pool that the task's selection was drawn from."""
    return draw_pool(data_of(kind), CAPS)


def released(kind: str) -> ReleasedTask:
    """Return the released task of a type."""
    pool = whole_pool(kind)
    fitted = fitted_task(pool)
    return release_task(data_of(kind).description, fitted, pool, pool.pool_hash())


def fitted_task(pool: Pool) -> FittedTask:
    """Return K random items of a pool with made-up parameters and calibration."""
    rng = generator("releases", pool.meta["task"])
    chosen = rng.choice(pool.items["item_id"].to_numpy(), K, replace=False)
    n = len(pool.items)
    parameters = pd.DataFrame({
        "item_id": pool.items["item_id"], "response_model": "linear_gaussian",
        "slope": rng.normal(size=n), "intercept": rng.random(n),
        "residual_sd": 0.1 + rng.random(n), "n_models": 9,
    })  # fmt: skip
    selection = pd.DataFrame(
        {"item_id": chosen, "method": "random", "rank": np.arange(K), "weight": np.full(K, 1 / K)}
    )
    estimator = "mean" if task_kind(pool.task_type) == "per_item" else "set_statistic"
    calibration = {
        "method": "linear", "estimator": estimator, "slope": 0.9, "intercept": 0.03,
        "residual_sd": 0.02, "n_models": 9, "theta_mean": 0.5, "theta_sd": 0.1,
        "reference_low": 0.2, "reference_high": 0.8,
    }  # fmt: skip
    return FittedTask.from_tables(
        task=str(pool.meta["task"]), task_type=pool.task_type, kind=task_kind(pool.task_type),
        items=pool.items, selection=selection, item_parameters=parameters,
        calibration=calibration,
    )  # fmt: skip
