"""Comparison of two models: the difference on every target, with a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.pairing import Difference, paired_differences
from mteblite.suites.task_types import TaskTypes

COLUMNS = [
    "target", "difference", "lower", "upper", "probability", "verdict", "interval_method",
]  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """The first model minus the second, as fractions.

    Attributes:
        differences: COLUMNS, one row per target (`macro`, `mean`, `type:<type>`, `task:<name>`):
            difference with the ends of its interval (NaN = unknown), probability that the first
            model is better, verdict (`better`, `worse`, `undecided`), and interval_method, see
            `pair_half_width`.
        level: nominal level of the intervals.
        joint: whether a joint calibration predicts the differences of tasks that were not scored.
        not_scored: tasks that one of the models lacks. Without a joint calibration, means over
            them are left out.
    """

    differences: pd.DataFrame
    level: float
    joint: bool
    not_scored: tuple[str, ...]


def compare_observed(
    fitted: Sequence[FittedTask],
    first: Mapping[str, np.ndarray],
    second: Mapping[str, np.ndarray],
    widths: pd.DataFrame,
    *,
    siblings: bool,
    types: TaskTypes,
    joint: JointCalibration | None,
) -> Comparison:
    """Compare two models by their results on the selected items; see `paired_differences`.

    `fitted` are all tasks of the suite; a model may lack some of them.
    """
    shared = [t for t in fitted if t.task in first and t.task in second]
    names = {t.task for t in shared}
    known = TaskTypes({t: kind for t, kind in types.items() if t in names}, types.parts)
    found: dict[str, Difference] = {}
    if shared:
        found = paired_differences(
            shared, first, second, widths, siblings=siblings, types=known, joint=joint
        )
    complete = set(found) if joint is not None else _complete_targets(fitted, names)
    rows = [_row(target, d) for target, d in found.items() if target in complete]
    lacking = tuple(sorted({t.task for t in fitted} - names))
    level = float(widths["level"].max())
    return Comparison(pd.DataFrame(rows, columns=COLUMNS), level, joint is not None, lacking)


def _complete_targets(fitted: Sequence[FittedTask], shared: set[str]) -> set[str]:
    """Return the targets whose tasks are all shared."""
    targets = {f"task:{name}" for name in shared}
    by_type: dict[str, list[str]] = {}
    for task in fitted:
        by_type.setdefault(task.task_type, []).append(task.task)
    targets |= {f"type:{kind}" for kind, tasks in by_type.items() if set(tasks) <= shared}
    return targets | {"macro", "mean"} if len(shared) == len(fitted) else targets


def _row(target: str, found: Difference) -> dict[str, object]:
    verdict = "better" if found.lower > 0 else "worse" if found.upper < 0 else "undecided"
    return {
        "target": target,
        "difference": found.value,
        "lower": found.lower,
        "upper": found.upper,
        "probability": found.share_positive,
        "verdict": verdict,
        "interval_method": found.method,
    }
