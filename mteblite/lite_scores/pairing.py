"""Difference of two models on the items that they share: what a merge is judged by.

Errors of a subset are mostly shared by models that answer alike, so the difference of two siblings
is several times more certain than either score (docs/methods.md, Paired differences). Items are
redrawn in pairs; calibrations apply to both models, so offsets cancel. Under a joint calibration
differences of the tasks inform each other, as scores do, but with the noise of a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd

from mteblite.calibrations.blup import MAX_DEVIATION, MIN_NOISE
from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.gaussian import condition
from mteblite.calibrations.registry import SET_STATISTIC, find_set_estimator
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.seeds import generator
from mteblite.validation.targets import target_weights

DRAWS = 400


@dataclass(frozen=True)
class Difference:
    """First model minus second on one target.

    Attributes:
        value: difference of the predicted full scores.
        lower: end of the interval.
        upper: other end.
        share_positive: probability that the first model is ahead.
    """

    value: float
    lower: float
    upper: float
    share_positive: float


def paired_differences(
    fitted: Sequence[FittedTask],
    first: Mapping[str, np.ndarray],
    second: Mapping[str, np.ndarray],
    *,
    level: float = 0.9,
    draws: int = DRAWS,
    types: Mapping[str, str] | None = None,
    joint: JointCalibration | None = None,
) -> dict[str, Difference]:
    """Return the differences of two models by target: `macro`, `mean`, `type:` and `task:`.

    Args:
        fitted: the tasks that both were scored on.
        first: per task the outcomes (k,) or observations (k, d) of the first model.
        second: the same of the second.
        level: of the intervals, which are for the pool: what the pool differs from the full task
            is not in them.
        draws: bootstrap draws.
        types: type of every task, see `TaskTypes`; None = as fitted, no task part of another.
        joint: the suite's joint calibration, if it has one. The targets are then of all its tasks:
            those that were not scored follow from the others.

    Raises:
        ValueError: a model lacks a task.
    """
    tasks = sorted(fitted, key=lambda t: t.task)
    gaps, drawn = [], []
    for task in tasks:
        for model in (first, second):
            if task.task not in model:
                raise ValueError(f"task {task.task!r} was not scored for both models: score it")
        pair = (np.asarray(first[task.task], float), np.asarray(second[task.task], float))
        a, b = (task.calibrated(o) for o in pair)
        gaps.append(a - b)
        drawn.append(_drawn(task, pair, draws))
    names, values, spread = [t.task for t in tasks], np.array(gaps), np.column_stack(drawn)
    if joint is not None:
        return _joint(joint, names, values, spread, level)
    types = types or {t.task: t.task_type for t in tasks}
    return {
        target: _redrawn(float(values @ w), spread @ w, level)
        for target, w in target_weights(names, types, with_types=True).items()
    }


def _redrawn(value: float, spread: np.ndarray, level: float) -> Difference:
    """A difference with the quantiles of its redrawn deviations (draws,)."""
    low, high = np.nanquantile(spread, [(1 - level) / 2, (1 + level) / 2])
    return Difference(value, value + low, value + high, float((value + spread > 0).mean()))


def _joint(
    joint: JointCalibration, names: list[str], values: np.ndarray, spread: np.ndarray, level: float
) -> dict[str, Difference]:
    """Differences given those of the tasks (n,) and their redrawn deviations (draws, n).

    Two models of the prior differ by N(0, 2 covariance); siblings differ less, so that differences
    are shrunk too little rather than too much.
    """
    place = [joint.tasks.index(name) for name in names]
    observed, noise = (np.full(len(joint.tasks), np.nan) for _ in range(2))
    observed[place], noise[place] = values, np.maximum(spread.var(axis=0), MIN_NOISE)
    prior = 2.0 * joint.blup.prior.covariance
    mean, covariance = condition(observed, noise, np.zeros(len(noise)), prior, cap=MAX_DEVIATION)
    found = {}
    for target, w in target_weights(joint.tasks, joint.task_types, with_types=True).items():
        normal = NormalDist(float(mean @ w), max(float(w @ covariance @ w), MIN_NOISE**2) ** 0.5)
        half = normal.stdev * NormalDist().inv_cdf(0.5 + level / 2)
        found[target] = Difference(
            normal.mean, normal.mean - half, normal.mean + half, 1.0 - normal.cdf(0.0)
        )
    return found


def _drawn(task: FittedTask, pair: tuple[np.ndarray, np.ndarray], draws: int) -> np.ndarray:
    """Deviations of the difference over redrawn items (draws,), centred.

    Per-item tasks redraw the weighted mean whatever the estimator: others are nearly linear in the
    outcomes, and their refit per draw would cost seconds. Items drawn without replacement from a
    finite pool vary less, by 1 - k / N.
    """
    weights = task.selection["weight"].to_numpy(dtype=float)
    k, size = len(weights), max(len(task.items), 1)
    rng = generator(0, task.task, "paired")
    counts = rng.multinomial(k, np.full(k, 1.0 / k), size=draws)
    shrink = np.sqrt(max(0.0, 1.0 - k / size) * k / max(k - 1, 1))
    if task.kind == "per_item":
        gap = pair[0] - pair[1]
        seen = np.isfinite(gap)
        mass = counts[:, seen] * weights[seen]
        with np.errstate(invalid="ignore", divide="ignore"):
            raw = mass @ gap[seen] / mass.sum(axis=1)
    else:
        rows = task.selected_rows
        raw = np.array([_statistic(task, pair, rows, n) for n in counts])
    raw = raw - (np.nanmean(raw) if np.isfinite(raw).any() else 0.0)
    return np.where(np.isfinite(raw), raw, 0.0) * task.calibration.slope * shrink


def _statistic(
    task: FittedTask, pair: tuple[np.ndarray, np.ndarray], rows: pd.DataFrame, counts: np.ndarray
) -> float:
    """Difference of a set statistic on redrawn items; copies count as weight."""
    kept = np.flatnonzero(counts)
    rows = rows.iloc[kept].reset_index(drop=True)
    weights = task.selection["weight"].to_numpy(dtype=float)[kept] * counts[kept]
    official = task.estimator == SET_STATISTIC
    statistic = task.statistic if official else find_set_estimator(task.estimator)
    a, b = (statistic(task.task_type, o[kept], rows, weights / weights.sum()) for o in pair)
    return float(a - b)
