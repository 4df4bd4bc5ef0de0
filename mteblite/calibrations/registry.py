"""All estimators by name. A new one is one file with an `Estimator` and one entry here."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.calibrations.estimator import EstimationContext, Estimator, Reference
from mteblite.calibrations.gp import estimate_gp
from mteblite.calibrations.greg import estimate_greg
from mteblite.calibrations.mean import estimate_mean
from mteblite.calibrations.pirt import estimate_pirt
from mteblite.calibrations.switch import estimate_switch
from mteblite.item_parameters.response_model import ItemParameters
from mteblite.selections.selector import Statistic
from mteblite.task_types.scoring import set_statistic, surrogate_statistic

ESTIMATORS: dict[str, Estimator] = {
    "mean": estimate_mean,
    "pirt": estimate_pirt,
    "gp": estimate_gp,
    "greg": estimate_greg,
    "switch": estimate_switch,
}
NEEDS_ABILITY = frozenset({"pirt", "gp", "switch"})
"""Estimators that need item parameters; without usable abilities `mean` replaces them."""
NEEDS_REFERENCE = frozenset({"greg", "switch"})
"""Estimators that need the reference models' outcomes on the whole pool."""
AIMS_AT_FULL_SCORE = frozenset({"switch"})
"""Estimators of the full score itself. By default they have no calibration, because one fitted on
their own training models would distort them."""
SET_STATISTIC = "set_statistic"
"""Estimator of set metrics: the official statistic on the selected items."""
SURROGATE = "surrogate"
"""Estimator of set metrics: a statistic of less variance, calibrated to the official one."""

SET_ESTIMATORS: dict[str, Statistic] = {
    SET_STATISTIC: set_statistic,
    SURROGATE: surrogate_statistic,
}


def find_estimator(name: str) -> Estimator:
    """Return an estimator of per-item tasks by name."""
    if name not in ESTIMATORS:
        raise ValueError(f"estimator {name!r} is unknown; allowed: {', '.join(ESTIMATORS)}")
    return ESTIMATORS[name]


def usable_estimator(estimator: str, kind: str, *, usable: bool) -> str:
    """Return the estimator that a task can use.

    Without usable abilities, `mean` replaces estimators that need them. For a set metric, an
    estimator of per-item tasks means the official statistic.

    Raises:
        ValueError: the estimator of a per-item task is unknown.
    """
    if kind != "per_item":
        return estimator if estimator in SET_ESTIMATORS else SET_STATISTIC
    find_estimator(estimator)
    return "mean" if estimator in NEEDS_ABILITY and not usable else estimator


def find_set_estimator(name: str) -> Statistic:
    """Return a statistic of set-metric tasks by name."""
    if name not in SET_ESTIMATORS:
        allowed = ", ".join(SET_ESTIMATORS)
        raise ValueError(f"set estimator {name!r} is unknown; allowed: {allowed}")
    return SET_ESTIMATORS[name]


def make_context(
    selection: pd.DataFrame,
    item_parameters: pd.DataFrame,
    items: pd.DataFrame,
    *,
    bounds: tuple[float, float],
    reference: Reference | None = None,
) -> EstimationContext:
    """Return the input of an estimator from the tables of a task.

    Args:
        selection: item_id, weight, and method where an estimator needs it.
        item_parameters: item_id, response_model, slope, intercept, residual_sd, n_models of all
            pool items.
        items: the pool's items: item_id, pool_weight.
        bounds: legal range of outcomes, see `legal_range`.
        reference: the training models, for estimators in NEEDS_REFERENCE.

    Raises:
        ValueError: a selected item is not in the pool, or the items name several response models.
    """
    ids = items["item_id"]
    place = pd.Series(np.arange(len(ids)), index=ids)
    unknown = sorted(set(selection["item_id"]) - set(ids))
    if unknown:
        raise ValueError(f"selected item {unknown[0]!r} is not in the pool: select again")
    rows = item_parameters.set_index("item_id").reindex(ids)
    names = rows["response_model"].dropna().unique()
    if len(names) != 1:
        raise ValueError(f"item parameters name {len(names)} response models, expected 1: refit")
    columns = (rows[c].to_numpy(float) for c in ("slope", "intercept", "residual_sd", "n_models"))
    pool = items["pool_weight"].to_numpy(dtype=float)
    return EstimationContext(
        positions=place[selection["item_id"]].to_numpy(),
        weights=selection["weight"].to_numpy(dtype=float),
        pool_weights=pool / pool.sum(),
        parameters=ItemParameters(*columns),
        response_model=str(names[0]),
        bounds=bounds,
        reference=reference,
        method=str(selection["method"].iloc[0]) if "method" in selection else "",
    )


def estimate_set(
    task_type: str,
    observations: np.ndarray,
    selected_items: pd.DataFrame,
    weights: np.ndarray,
    statistic: Statistic = set_statistic,
) -> float:
    """Return a statistic of one model on the selected items of a set-metric task.

    Observations (k, d) and selection weights (k,) are in the order of the selected items.

    Raises:
        ValueError: the numbers of observations and items differ.
    """
    if len(observations) != len(selected_items):
        raise ValueError(
            f"got {len(observations)} observations for {len(selected_items)} selected items"
        )
    return float(statistic(task_type, observations, selected_items, weights))
