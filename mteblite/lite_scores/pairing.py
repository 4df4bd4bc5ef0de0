"""Difference of two models on the same items, e.g. of two merges.

The difference is that of the two lite scores. Its interval comes from pairs of held-out models
(`pair_widths`, docs/methods.md, Paired differences).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd

from mteblite.calibrations.estimator import legal_range
from mteblite.calibrations.fitted_task import FittedTask
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.pair_widths import SCORES, pair_half_width
from mteblite.lite_scores.redraws import redraw_variance, redrawn
from mteblite.validation.targets import target_weights


@dataclass(frozen=True)
class Difference:
    """First model minus second on one target, with its interval; NaN ends = unknown.

    `share_positive` is the probability that the first model is better, from a normal distribution
    with this interval; `method` says where the interval comes from, see `pair_half_width`.
    """

    value: float
    lower: float
    upper: float
    share_positive: float
    method: str


def paired_differences(
    fitted: Sequence[FittedTask],
    first: Mapping[str, np.ndarray],
    second: Mapping[str, np.ndarray],
    widths: pd.DataFrame,
    *,
    siblings: bool = False,
    types: Mapping[str, str] | None = None,
    joint: JointCalibration | None = None,
) -> dict[str, Difference]:
    """Return the differences of two models by target: `macro`, `mean`, `type:` and `task:`.

    Args:
        fitted: the tasks that both were scored on.
        first: per task the outcomes (k,) or observations (k, d) of the first model.
        second: the same of the second.
        widths: of the suite, from `with_pair_widths`.
        siblings: whether both models are of one family.
        types: type of every task, see `TaskTypes`; None = as fitted, without aggregates.
        joint: the suite's joint calibration, if it has one. It predicts the differences of tasks
            that were not scored, so the targets are those of all tasks.

    Raises:
        ValueError: a model lacks a task.
    """
    tasks = sorted(fitted, key=lambda t: t.task)
    for task in tasks:
        for model in (first, second):
            if task.task not in model:
                raise ValueError(f"task {task.task!r} was not scored for both models: score it")
    rows = {
        str(row["target"]): {str(k): v for k, v in row.items()} for row in widths.to_dict("records")
    }
    spread = {}
    for task in tasks:
        scores = redrawn(task, [np.asarray(m[task.task], float) for m in (first, second)])
        spread[task.task] = redraw_variance(*scores)
    if joint is not None:
        return _joint(joint, tasks, (first, second), spread, rows, siblings)
    names, gaps = [t.task for t in tasks], [_gap(t, first, second) for t in tasks]
    types = types or {t.task: t.task_type for t in tasks}
    found = {}
    for target, w in target_weights(names, types, with_types=True).items():
        variance = float(np.array([spread[n] for n in names]) @ w**2)
        half, method = pair_half_width(rows[target], variance, siblings=siblings)
        found[target] = _difference(float(np.array(gaps) @ w), half, method, rows[target])
    return found


def _gap(
    task: FittedTask, first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]
) -> float:
    """Return the difference of two lite scores of a task."""
    one, two = (task.calibrated(np.asarray(m[task.task], float)) for m in (first, second))
    low, high = legal_range(task.task_type)
    return float(np.clip(one, low, high) - np.clip(two, low, high))


def _joint(
    joint: JointCalibration,
    tasks: Sequence[FittedTask],
    models: tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]],
    spread: Mapping[str, float],
    rows: Mapping[str, Mapping[str, float]],
    siblings: bool,
) -> dict[str, Difference]:
    """Return the differences of joint scores, also of tasks that were not scored.

    Held-out models were scored on all tasks. Where tasks are missing, the half-width grows as the
    posterior standard deviation does, and the spread of a missing task is the usual one.
    """
    one, two = (
        joint.score({t.task: t.calibrated(np.asarray(m[t.task], float)) for t in tasks})
        .set_index("target").to_dict("index")
        for m in models
    )  # fmt: skip
    whole = joint.usual_deviations()
    usual = {t: float(rows[f"task:{t}"].get("pair_sd", np.nan)) ** 2 for t in joint.tasks}
    variances = np.array([spread.get(t, usual[t]) for t in joint.tasks])
    found = {}
    for target, w in target_weights(joint.tasks, joint.task_types, with_types=True).items():
        variance = float(variances[w > 0] @ w[w > 0] ** 2)
        half, method = pair_half_width(rows[target], variance, siblings=siblings)
        a, b = one[target], two[target]
        if method == SCORES:
            half = float(np.hypot(a["half_width"], b["half_width"]))
        else:
            half *= max(1.0, float(np.hypot(a["sd"], b["sd"])) / (2**0.5 * whole[target]))
        found[target] = _difference(
            float(a["predicted"] - b["predicted"]), half, method, rows[target]
        )
    return found


def _difference(value: float, half: float, method: str, row: Mapping[str, float]) -> Difference:
    z = NormalDist().inv_cdf(0.5 + row["level"] / 2.0)
    # Held-out pairs without any error, as in a made-up suite, give a half-width of 0.
    positive = NormalDist().cdf(value * z / half) if half else 0.5 + 0.5 * float(np.sign(value))
    return Difference(value, value - half, value + half, positive, method)
