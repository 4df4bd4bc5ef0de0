"""All lite scores of one model: every task, type means, mean and macro mean, with intervals.

Scores come task by task with half-widths, or from the suite's joint calibration where it has one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.lite_scores.aggregation import SuiteScore, aggregate, suite_rows, type_rows
from mteblite.lite_scores.degenerate import (
    degenerate_rows,
    undefined_tasks,
    undefined_warning,
    widened,
)
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.prediction import TASK_SCORE_COLUMNS, predict_tasks
from mteblite.lite_scores.reach import with_reach


@dataclass(frozen=True)
class ModelScores:
    """The lite scores of one model.

    Attributes:
        tasks: TASK_SCORE_COLUMNS and observed, sorted by task.
        types: task_type, predicted, lower, upper, interval_method, out_of_range.
        suite: mean, macro_mean, their ends, interval_method, n_tasks, out_of_range.
        score: the means without intervals.
        warnings: sentences about tasks whose metric has no value for the model's vectors.
    """

    tasks: pd.DataFrame
    types: pd.DataFrame
    suite: dict[str, Any]
    score: SuiteScore
    warnings: tuple[str, ...]


def score_model(
    fitted: Sequence[FittedTask],
    observed: Mapping[str, np.ndarray],
    widths: pd.DataFrame,
    joint: JointCalibration | None = None,
    types: Mapping[str, str] | None = None,
    collapsed: Collection[str] = (),
) -> ModelScores:
    """Return the lite scores of one model.

    Args:
        fitted: the suite's tasks.
        observed: per task the outcomes (k,) or observations (k, d) on its selection. Tasks may be
            missing; a joint calibration predicts them from the others.
        widths: target, half_width, interval_method, reference_low, reference_high.
        joint: the suite's joint calibration, if it has one.
        types: type of every task, see `TaskTypes`; None = as fitted, without aggregates.
        collapsed: tasks whose texts all got the same vector, see `degenerate`. Tasks whose metric
            has no value for the model's vectors are treated alike.

    Raises:
        ValueError: no task was observed, or an observed task is not fitted.
    """
    types = types or {t.task: t.task_type for t in fitted}
    undefined = undefined_tasks(fitted, observed, collapsed)
    collapsed = {*collapsed, *undefined}
    usable = {task: rows for task, rows in observed.items() if task not in collapsed}
    if joint is not None and (usable or not collapsed):
        found, ends = _joint_scores(fitted, usable, joint)
    else:
        found, ends = predict_tasks(fitted, usable, widths).assign(observed=True), widths
    if collapsed:
        # Without any usable task, nothing predicts the tasks that were not observed either.
        without = collapsed if usable else [t.task for t in fitted]
        kept = found[~found["task"].isin(without)]
        rows = degenerate_rows(fitted, observed, without)
        found = pd.concat([kept, rows], ignore_index=True) if len(kept) else rows
        ends = widened(ends, types, without)
    found = with_reach(found, fitted, ends)
    score = aggregate(found, types)
    ranges = widths.set_index("target")
    by_type = type_rows(score, ends).rename(columns={"mean": "predicted"})
    by_type["out_of_range"] = [
        _beyond(ranges, f"type:{kind}", value)
        for kind, value in zip(by_type["task_type"], by_type["predicted"], strict=True)
    ]
    suite = suite_rows(score, ends)
    suite["out_of_range"] = _beyond(ranges, "macro", score.macro_mean)
    tasks = found.drop(columns="reach").sort_values("task", ignore_index=True)
    return ModelScores(tasks, by_type, suite, score, undefined_warning(undefined))


def _estimates(
    fitted: Sequence[FittedTask], observed: Mapping[str, np.ndarray]
) -> dict[str, tuple[float, float]]:
    """Return (raw, calibrated) of each observed task."""
    found = {}
    for task in fitted:
        if task.task in observed:
            raw = task.raw(np.asarray(observed[task.task]))
            found[task.task] = (raw, float(task.calibration.apply(np.array([raw]))[0]))
    return found


def _joint_scores(
    fitted: Sequence[FittedTask], observed: Mapping[str, np.ndarray], joint: JointCalibration
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return one row per task of the suite, and the half-width of every target for this model.

    Half-widths depend on the tasks that were observed.
    """
    estimates = _estimates(fitted, observed)
    table = joint.score({t: e[1] for t, e in estimates.items()})
    by_target = table.set_index("target")
    rows = []
    for task in sorted(fitted, key=lambda t: t.task):
        row = {str(k): v for k, v in by_target.loc[f"task:{task.task}"].to_dict().items()}
        value = float(row["predicted"])
        seen = bool(row["observed"])
        rows.append(
            {
                "task": task.task,
                "raw": estimates[task.task][0] if task.task in estimates else float("nan"),
                "predicted": value,
                "lower": float(row["lower"]),
                "upper": float(row["upper"]),
                "interval_method": str(row["interval_method"]),
                "out_of_range": value < task.reference_low or value > task.reference_high,
                "n_items": len(task.selection) if seen else 0,
                "observed": seen,
            }
        )
    found = pd.DataFrame(rows, columns=[*TASK_SCORE_COLUMNS, "observed"])
    return found, table[["target", "half_width", "interval_method"]]


def _beyond(ranges: pd.DataFrame, target: str, value: float) -> bool:
    """Return whether a score is beyond all reference models; False where their range is unknown."""
    if target not in ranges.index or "reference_low" not in ranges:
        return False
    row = ranges.loc[target]
    low, high = float(str(row["reference_low"])), float(str(row["reference_high"]))
    return bool(value < low or value > high)
