"""Difference of two models on the same items, e.g. of two merges.

Similar models share most of the error of a selection, so the difference of two siblings has a
standard error several times smaller than either score (docs/methods.md, Paired differences). The
bootstrap draws items of both models in pairs. Offsets of the calibrations cancel. A joint
calibration combines the differences of tasks as it combines scores, with the noise of a difference.
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
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.seeds import generator
from mteblite.validation.targets import target_weights

DRAWS = 400


@dataclass(frozen=True)
class Difference:
    """First model minus second on one target, with its interval.

    `share_positive` is the probability that the first model is better.
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
        level: of the intervals. They are for the pool and do not include the difference of pool and
            full task.
        draws: bootstrap draws.
        types: type of every task, see `TaskTypes`; None = as fitted, without aggregates.
        joint: the suite's joint calibration, if it has one. It predicts the differences of tasks
            that were not scored, so the targets are those of all tasks.

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
    """Return a difference with the quantiles of its bootstrap deviations (draws,)."""
    low, high = np.nanquantile(spread, [(1 - level) / 2, (1 + level) / 2])
    return Difference(value, value + low, value + high, float((value + spread > 0).mean()))


def _joint(
    joint: JointCalibration, names: list[str], values: np.ndarray, spread: np.ndarray, level: float
) -> dict[str, Difference]:
    """Return differences, given those of the tasks (n,) and their bootstrap deviations (draws, n).

    The difference of two models of the prior is N(0, 2 covariance). That of siblings is smaller, so
    the posterior shrinks differences too little rather than too much.
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
    """Return the centred bootstrap deviations of the difference (draws,).

    Per-item tasks use the weighted mean for every estimator, because the others are nearly linear
    in the outcomes and too slow for every draw. The variance has the factor 1 - k / N of items
    drawn without replacement from a finite pool.
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
    """Return the difference of a set statistic on drawn items; counts multiply the weights."""
    kept = np.flatnonzero(counts)
    rows = rows.iloc[kept].reset_index(drop=True)
    weights = task.selection["weight"].to_numpy(dtype=float)[kept] * counts[kept]
    weights = weights / weights.sum()
    a, b = (task.set_estimator(task.task_type, o[kept], rows, weights) for o in pair)
    return float(a - b)
