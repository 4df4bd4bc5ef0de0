"""Predict the full score of every task from a model's results on the selected items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mteblite.calibrations.estimator import legal_range
from mteblite.calibrations.fitted_task import FittedTask

TASK_SCORE_COLUMNS = [
    "task", "raw", "predicted", "lower", "upper", "interval_method", "out_of_range", "n_items",
]  # fmt: skip


def predict_tasks(
    fitted: Sequence[FittedTask],
    observed: Mapping[str, np.ndarray],
    half_widths: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the lite scores of one model, one row per task that was observed.

    Args:
        fitted: the suite's tasks.
        observed: per task the outcomes (k,) or observations (k, d) on its selection, in the
            order of the selection's ranks.
        half_widths: from `interval_half_widths`; None = no intervals (NaN, method `none`).

    Returns:
        TASK_SCORE_COLUMNS, sorted by task: `raw` before calibration, `predicted` and the interval
        clipped to the legal range, `out_of_range` True where the unclipped prediction is beyond all
        reference models (so that the calibration extrapolates), `n_items` selected.

    Raises:
        ValueError: an observed task is not fitted, or has the wrong number of items.
    """
    unknown = sorted(set(observed) - {task.task for task in fitted})
    if unknown:
        raise ValueError(
            f"task {unknown[0]!r} has outcomes but no fitted selection: materialize it"
        )
    widths = _widths(half_widths)
    rows = [
        _predict(
            task,
            np.asarray(observed[task.task]),
            widths.get(f"task:{task.task}", (float("nan"), "none")),
        )
        for task in sorted(fitted, key=lambda t: t.task)
        if task.task in observed
    ]
    return pd.DataFrame(rows, columns=TASK_SCORE_COLUMNS)


def _widths(half_widths: pd.DataFrame | None) -> dict[str, tuple[float, str]]:
    """Return half-width and method by target."""
    if half_widths is None:
        return {}
    columns = (half_widths[c] for c in ("target", "half_width", "interval_method"))
    return {str(t): (float(h), str(m)) for t, h, m in zip(*columns, strict=True)}


def _predict(task: FittedTask, observed: np.ndarray, width: tuple[float, str]) -> dict[str, object]:
    """Return the row of one task."""
    raw = task.raw(observed)
    calibrated = float(task.calibration.apply(np.array([raw]))[0])
    low, high = legal_range(task.task_type)
    predicted = float(np.clip(calibrated, low, high))
    half, method = width
    return {
        "task": task.task,
        "raw": raw,
        "predicted": predicted,
        "lower": float(np.clip(predicted - half, low, high)),
        "upper": float(np.clip(predicted + half, low, high)),
        "interval_method": method,
        "out_of_range": calibrated < task.reference_low or calibrated > task.reference_high,
        "n_items": len(task.selection),
    }
