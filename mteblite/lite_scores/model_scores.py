"""All lite scores of one model: every task, type means, mean and macro mean, with intervals.

Task by task with half-widths, or through the suite's calibration over all tasks where it has one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mteblite.calibrations.estimator import legal_range
from mteblite.calibrations.fitted_task import FittedTask
from mteblite.lite_scores.aggregation import SuiteScore, aggregate, suite_rows, type_rows
from mteblite.lite_scores.joint_scores import JointRelease, joint_from_json
from mteblite.lite_scores.macro_release import KIND, MacroRelease, macro_from_json
from mteblite.lite_scores.prediction import TASK_SCORE_COLUMNS, predict_tasks

Release = JointRelease | MacroRelease


@dataclass(frozen=True)
class ModelScores:
    """The lite scores of one model.

    Attributes:
        tasks: TASK_SCORE_COLUMNS and observed, sorted by task.
        types: task_type, predicted, lower, upper, interval_method, out_of_range.
        suite: mean, macro_mean, their ends, interval_method, n_tasks, out_of_range.
        score: the means by themselves.
    """

    tasks: pd.DataFrame
    types: pd.DataFrame
    suite: dict[str, Any]
    score: SuiteScore


def read_release(text: str) -> Release:
    """Return the calibration over all tasks that a row of `lite_suite_joint` holds.

    Raises:
        ValueError: a format that this version does not know.
    """
    return macro_from_json(text) if json.loads(text).get("kind") == KIND else joint_from_json(text)


def score_model(
    fitted: Sequence[FittedTask],
    observed: Mapping[str, np.ndarray],
    widths: pd.DataFrame,
    release: Release | None = None,
    types: Mapping[str, str] | None = None,
) -> ModelScores:
    """Return the lite scores of one model.

    Args:
        fitted: the suite's tasks.
        observed: per task the outcomes (k,) or observations (k, d) on its selection. Only a joint
            calibration predicts tasks that are missing here, from the others.
        widths: target, half_width, interval_method, reference_low, reference_high.
        release: the suite's calibration over all tasks, if it has one.
        types: type of every task, see `TaskTypes`; None = as fitted, no task part of another.

    Raises:
        ValueError: no task was observed, or one that is not fitted.
    """
    types = types or {t.task: t.task_type for t in fitted}
    if isinstance(release, JointRelease):
        found = _joint_tasks(fitted, observed, release)
        ends = _joint_ends(fitted, observed, release)
    else:
        found = predict_tasks(fitted, observed, widths)
        found = _shifted(found, fitted, observed, release, widths) if release is not None else found
        found["observed"] = True
        ends = widths
    score = aggregate(found, types)
    ranges = widths.set_index("target")
    rows = type_rows(score, ends).rename(columns={"mean": "predicted"})
    rows["out_of_range"] = [
        _beyond(ranges, f"type:{kind}", value)
        for kind, value in zip(rows["task_type"], rows["predicted"], strict=True)
    ]
    suite = suite_rows(score, ends)
    suite["out_of_range"] = _beyond(ranges, "macro", score.macro_mean)
    return ModelScores(found.sort_values("task", ignore_index=True), rows, suite, score)


def _estimates(
    fitted: Sequence[FittedTask], observed: Mapping[str, np.ndarray]
) -> dict[str, tuple[float, float]]:
    """(raw, calibrated) of each observed task."""
    found = {}
    for task in fitted:
        if task.task in observed:
            raw = task.raw(np.asarray(observed[task.task]))
            found[task.task] = (raw, float(task.calibration.apply(np.array([raw]))[0]))
    return found


def _joint_tasks(
    fitted: Sequence[FittedTask], observed: Mapping[str, np.ndarray], release: JointRelease
) -> pd.DataFrame:
    """One row per task of the suite, observed or not."""
    estimates = _estimates(fitted, observed)
    table = release.score({t: e[1] for t, e in estimates.items()}).set_index("target")
    rows = []
    for task in sorted(fitted, key=lambda t: t.task):
        row = {str(k): v for k, v in table.loc[f"task:{task.task}"].to_dict().items()}
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
    return pd.DataFrame(rows, columns=[*TASK_SCORE_COLUMNS, "observed"])


def _joint_ends(
    fitted: Sequence[FittedTask], observed: Mapping[str, np.ndarray], release: JointRelease
) -> pd.DataFrame:
    """Half-widths of every target for this model: they depend on which tasks it has."""
    estimates = {t: e[1] for t, e in _estimates(fitted, observed).items()}
    return release.score(estimates)[["target", "half_width", "interval_method"]]


def _shifted(
    found: pd.DataFrame,
    fitted: Sequence[FittedTask],
    observed: Mapping[str, np.ndarray],
    release: MacroRelease,
    widths: pd.DataFrame,
) -> pd.DataFrame:
    """Move every task's score by the same amount, and clip again."""
    estimates = {t: e[1] for t, e in _estimates(fitted, observed).items()}
    shift = release.shift(estimates)
    by_task = {t.task: t for t in fitted}
    halves = widths.set_index("target")["half_width"].to_dict()
    rows = found.copy()
    for place, name in enumerate(found["task"]):
        task = by_task[str(name)]
        low, high = legal_range(task.task_type)
        half = float(halves.get(f"task:{name}", float("nan")))
        value = estimates[task.task] + shift
        clipped = float(np.clip(value, low, high))
        rows.loc[place, "predicted"] = clipped
        rows.loc[place, "lower"] = float(np.clip(clipped - half, low, high))
        rows.loc[place, "upper"] = float(np.clip(clipped + half, low, high))
        rows.loc[place, "out_of_range"] = value < task.reference_low or value > task.reference_high
    return rows


def _beyond(ranges: pd.DataFrame, target: str, value: float) -> bool:
    """Whether a score lies beyond every reference model's; False where there is no telling."""
    if target not in ranges.index or "reference_low" not in ranges:
        return False
    row = ranges.loc[target]
    low, high = float(str(row["reference_low"])), float(str(row["reference_high"]))
    return bool(value < low or value > high)
