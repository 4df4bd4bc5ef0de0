"""Redraws of a task's selected items: how much a difference of two models depends on the items.

All models get the same draws, so that what two models share cancels in their difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.registry import estimate_set
from mteblite.seeds import generator

DRAWS = 100
"""Gives the standard deviation of a difference to 7 %, its standard error at 100 normal draws."""


def redrawn(task: FittedTask, observed: Sequence[np.ndarray], *, draws: int = DRAWS) -> np.ndarray:
    """Return the scores (n_models, draws) of models on redrawn items, without the intercept.

    Per-item tasks use the weighted mean for every estimator, because the others are nearly linear
    in the outcomes and too slow for every draw. Scores are multiplied by the slope of the
    calibration, and by the factor that makes their variance that of items drawn without
    replacement from a finite pool, (1 - k / N) k / (k - 1). NaN where a draw has no score.

    Args:
        task: the fitted task.
        observed: per model the outcomes (k,) or observations (k, d) on its selection.
        draws: bootstrap draws of items.
    """
    weights = task.selection["weight"].to_numpy(dtype=float)
    k, size = len(weights), max(len(task.items), 1)
    counts = generator(0, task.task, "paired").multinomial(k, np.full(k, 1.0 / k), size=draws)
    mass = counts * weights
    if task.kind == "per_item":
        outcomes = np.array(observed, dtype=float)
        seen = np.isfinite(outcomes)
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = (np.where(seen, outcomes, 0.0) @ mass.T) / (seen @ mass.T)
    else:
        scores = _statistics(task, observed, mass)
    finite_pool = np.sqrt(max(0.0, 1.0 - k / size) * k / max(k - 1, 1))
    return scores * task.calibration.slope * finite_pool


def redraw_variance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the variance of the difference of two models' scores (draws,); 0 without scores."""
    gap = first - second
    gap = gap[np.isfinite(gap)]
    return float(gap.var()) if gap.size else 0.0


def _statistics(task: FittedTask, observed: Sequence[np.ndarray], mass: np.ndarray) -> np.ndarray:
    """Return a set statistic (n_models, draws) by weights (draws, k); 0 = not drawn."""
    rows, found = task.selected_rows, np.empty((len(observed), len(mass)))
    for draw, weights in enumerate(mass):
        kept = np.flatnonzero(weights)
        drawn = rows.iloc[kept].reset_index(drop=True)
        share = weights[kept] / weights[kept].sum()
        for model, seen in enumerate(observed):
            found[model, draw] = estimate_set(
                task.task_type, np.asarray(seen)[kept], drawn, share, task.set_estimator
            )
    return found
