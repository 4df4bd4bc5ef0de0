"""All estimators by name. A new one is one file with an `Estimator` and one entry here."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from mteblite_assets.calibrations.estimator import EstimationContext, Estimator
from mteblite_assets.calibrations.gp import estimate_gp
from mteblite_assets.calibrations.mean import estimate_mean
from mteblite_assets.calibrations.pirt import estimate_pirt
from mteblite_assets.item_parameters.response_model import ItemParameters
from mteblite_assets.outcomes.scoring import set_statistic

ESTIMATORS: dict[str, Estimator] = {
    "mean": estimate_mean,
    "pirt": estimate_pirt,
    "gp": estimate_gp,
}
NEEDS_ABILITY = frozenset({"pirt", "gp"})
"""Estimators that rely on item parameters; without usable abilities `mean` steps in."""
SET_STATISTIC = "set_statistic"
"""Estimator of set metrics: the official statistic on the selected items."""

Statistic = Callable[[str, np.ndarray, pd.DataFrame, np.ndarray], float]
"""(task type, observations (k, d), items, weights (k,)) -> the statistic, NaN = undefined."""


def estimate(
    estimator: str,
    outcomes: np.ndarray,
    selection: pd.DataFrame,
    item_parameters: pd.DataFrame,
    items: pd.DataFrame,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> float:
    """Return the raw estimate of one model on a per-item task.

    Args:
        estimator: a name in ESTIMATORS.
        outcomes: (k,) outcomes on the rows of `selection`, in their order; NaN = not observed.
        selection: item_id, weight.
        item_parameters: item_id, response_model, slope, intercept, residual_sd, n_models of all
            pool items.
        items: the pool's items: item_id, pool_weight.
        bounds: legal range of outcomes, see `legal_range`.

    Raises:
        ValueError: the estimator is unknown, a selected item is not in the pool, or shapes differ.
    """
    context = make_context(selection, item_parameters, items, bounds=bounds)
    values = np.asarray(outcomes, dtype=float)
    if values.shape != (len(selection),):
        raise ValueError(f"got outcomes of shape {values.shape} for {len(selection)} items")
    return float(find_estimator(estimator)(values[None, :], context)[0])


def find_estimator(name: str) -> Estimator:
    """Return an estimator of per-item tasks by name."""
    if name not in ESTIMATORS:
        raise ValueError(f"estimator {name!r} is unknown; allowed: {', '.join(ESTIMATORS)}")
    return ESTIMATORS[name]


def make_context(
    selection: pd.DataFrame,
    item_parameters: pd.DataFrame,
    items: pd.DataFrame,
    *,
    bounds: tuple[float, float],
) -> EstimationContext:
    """Align the tables of a task by item_id; see `estimate`."""
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
    )


def estimate_set(
    task_type: str,
    observations: np.ndarray,
    selected_items: pd.DataFrame,
    weights: np.ndarray,
    *,
    statistic: Statistic = set_statistic,
) -> float:
    """Return the official statistic of one model on the selected items of a set-metric task.

    Args:
        task_type: `STS`, `PairClassification` or `Clustering`.
        observations: (k, d) in the order of `selected_items`.
        selected_items: rows of the pool's items.
        weights: (k,) selection weights.
        statistic: the official one, unless a test passes its own.
    """
    if len(observations) != len(selected_items):
        raise ValueError(
            f"got {len(observations)} observations for {len(selected_items)} selected items"
        )
    return float(statistic(task_type, observations, selected_items, weights))
