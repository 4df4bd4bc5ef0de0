"""Mean, macro mean and type means of a model's lite scores, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mteblite.calibrations.estimator import legal_range
from mteblite.validation.targets import combine, target_weights


@dataclass(frozen=True)
class SuiteScore:
    """Scores of one model on a suite; NaN for a mean that lacks a task.

    Attributes:
        n_tasks: tasks with a prediction.
        reached: of `macro`, `mean` and each `type:` the mean that the upper end of its interval
            counts from, see `reach`.
        ranges: lowest and highest possible value of `macro`, `mean` and each `type:`, i.e. the same
            means of the tasks' legal ranges.
    """

    mean: float
    macro_mean: float
    type_means: dict[str, float]
    n_tasks: int
    reached: dict[str, float]
    ranges: dict[str, tuple[float, float]]


def aggregate(task_scores: pd.DataFrame, task_types: Mapping[str, str]) -> SuiteScore:
    """Return the suite score of one model from rows of task, predicted and, of lite scores, reach.

    Raises:
        ValueError: a task is not in the suite, or has two rows.
    """
    tasks = sorted(task_types)
    scores = task_scores.set_index("task")
    scores = pd.DataFrame(
        {"predicted": scores["predicted"], "reach": scores.get("reach", scores["predicted"])}
    )
    unknown = sorted(set(scores.index) - set(tasks))
    if unknown or scores.index.has_duplicates:
        problem = f"{unknown[0]!r} is not in the suite" if unknown else "one is there twice"
        raise ValueError(f"task scores do not fit the suite: {problem}")
    values, reached = scores.reindex(tasks).to_numpy(dtype=float).T
    targets = target_weights(tasks, task_types, with_types=True)
    found = {name: float(combine(values, weights)) for name, weights in targets.items()}
    bounds = np.array([legal_range(task_types[t]) for t in tasks]).T
    return SuiteScore(
        mean=found["mean"],
        macro_mean=found["macro"],
        type_means={t: found[f"type:{t}"] for t in sorted(set(task_types.values()))},
        n_tasks=int(np.isfinite(values).sum()),
        reached={name: float(combine(reached, weights)) for name, weights in targets.items()},
        ranges={
            # Weights sum to 1 but for rounding.
            name: (float(combine(bounds[0], weights)), min(float(combine(bounds[1], weights)), 1.0))
            for name, weights in targets.items()
        },
    )


def suite_rows(score: SuiteScore, half_widths: pd.DataFrame) -> dict[str, object]:
    """Return the row of `lite_scores.suite_scores`: mean and macro mean with their intervals."""
    mean = _interval("mean", score.mean, score, half_widths)
    macro = _interval("macro", score.macro_mean, score, half_widths)
    return {
        "mean": score.mean,
        "mean_lower": mean[0],
        "mean_upper": mean[1],
        "macro_mean": score.macro_mean,
        "macro_lower": macro[0],
        "macro_upper": macro[1],
        "interval_method": macro[2],
        "n_tasks": score.n_tasks,
    }


def type_rows(score: SuiteScore, half_widths: pd.DataFrame) -> pd.DataFrame:
    """Return one row per task type: task_type, mean, lower, upper, interval_method."""
    rows = [
        (kind, mean, *_interval(f"type:{kind}", mean, score, half_widths))
        for kind, mean in score.type_means.items()
    ]
    return pd.DataFrame(rows, columns=["task_type", "mean", "lower", "upper", "interval_method"])


def _interval(
    target: str, value: float, score: SuiteScore, half_widths: pd.DataFrame
) -> tuple[float, float, str]:
    """Return the ends and the method of a target's interval, within the target's range."""
    if target not in set(half_widths["target"]):
        return float("nan"), float("nan"), "none"
    row = half_widths.loc[half_widths["target"] == target].iloc[0].to_dict()
    half = float(row["half_width"])
    lowest, highest = score.ranges[target]
    low, high = max(value - half, lowest), min(max(value, score.reached[target]) + half, highest)
    return low, high, str(row["interval_method"])
