"""How far up a model beyond all reference models may reach.

A line that was fitted on the reference models shrinks what lies beyond them: a perfect model gets
the score of a good one, and no held-out model says by how much that is too low. So the upper end
of its interval counts from a second line: from the best reference model's score at the estimate
that the calibration gives it, to a perfect score at a perfect estimate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mteblite.calibrations.estimator import legal_range
from mteblite.calibrations.fitted_task import FittedTask


def with_reach(
    scores: pd.DataFrame, fitted: Sequence[FittedTask], half_widths: pd.DataFrame
) -> pd.DataFrame:
    """Add `reach` to the task scores of a model, and let their upper ends count from it.

    Args:
        scores: one row per task: task, raw, predicted, upper and others.
        fitted: the suite's tasks.
        half_widths: target, half_width.
    """
    by_task = {t.task: t for t in fitted}
    rows = zip(scores["task"], scores["raw"], scores["predicted"], strict=True)
    found = np.array([reach(by_task[t], float(raw), float(score)) for t, raw, score in rows])
    half = half_widths.set_index("target")["half_width"].reindex("task:" + scores["task"])
    highest = [legal_range(by_task[t].task_type)[1] for t in scores["task"]]
    upper = np.minimum(found + half.to_numpy(dtype=float), highest)
    beyond = found > scores["predicted"]
    raised = np.fmax(scores["upper"].to_numpy(dtype=float), upper)
    return scores.assign(reach=found, upper=np.where(beyond, raised, scores["upper"]))


def reach(task: FittedTask, raw: float, predicted: float) -> float:
    """Return the score that the upper end of a model's interval counts from.

    Args:
        task: the fitted task.
        raw: the model's estimate before calibration; NaN = the task was not observed.
        predicted: its predicted full score.

    Returns:
        The prediction, or a higher score where the calibrated estimate is beyond all reference
        models or the estimate is perfect.
    """
    _, highest = legal_range(task.task_type)
    if not np.isfinite(raw):
        return predicted
    line = task.calibration
    best = (task.reference_high - line.intercept) / line.slope
    if raw >= highest:
        return highest
    if raw <= best:
        return predicted
    share = (raw - best) / (highest - best)
    return max(predicted, task.reference_high + share * (highest - task.reference_high))
