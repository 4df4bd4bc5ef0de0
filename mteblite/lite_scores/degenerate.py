"""Scores of a collapsed model, which gives all texts of a task one vector or one direction.

Its outcomes hold no information on a model, only the order in which a metric breaks ties. So they
are not calibrated, and no other task predicts them (docs/methods.md, Collapsed models).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from mteblite.calibrations.estimator import legal_range
from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.registry import estimate_set
from mteblite.lite_scores.prediction import TASK_SCORE_COLUMNS
from mteblite.validation.targets import target_weights

METHOD = "degenerate"
"""Interval method of targets with a collapsed task: the whole legal range."""
CHANCE = 0.0
"""The score of a statistic that is undefined for equal vectors, such as a correlation."""


def undefined_tasks(
    fitted: Sequence[FittedTask], observed: Mapping[str, np.ndarray], collapsed: Collection[str]
) -> list[str]:
    """Return the tasks that did not collapse, but whose metric has no value for the model.

    A correlation has none where all cosines are equal.
    """
    others = [t for t in fitted if t.task in observed and t.task not in collapsed]
    return [t.task for t in others if not np.isfinite(t.raw(np.asarray(observed[t.task])))]


def undefined_warning(tasks: Sequence[str]) -> tuple[str, ...]:
    """Return the warning about `undefined_tasks`; () without any."""
    if not tasks:
        return ()
    return (
        f"degenerate: the metric of {', '.join(tasks)} has no value for these vectors, so scores "
        "there are those of chance, and not calibrated",
    )


def degenerate_rows(
    fitted: Sequence[FittedTask], observed: Mapping[str, np.ndarray], tasks: Collection[str]
) -> pd.DataFrame:
    """Return the rows of collapsed tasks: TASK_SCORE_COLUMNS and observed.

    Args:
        fitted: the suite's tasks.
        observed: per task the outcomes (k,) or observations (k, d) on its selection.
        tasks: the collapsed tasks; one that was not observed has the score of chance.
    """
    rows = []
    for task in (t for t in fitted if t.task in tasks):
        low, high = legal_range(task.task_type)
        raw = _observed_score(task, observed[task.task]) if task.task in observed else CHANCE
        predicted = min(float(np.clip(raw, low, high)), max(task.reference_high, CHANCE))
        rows.append(
            {
                "task": task.task,
                "raw": raw,
                "predicted": predicted,
                "lower": low,
                "upper": high,
                "interval_method": METHOD,
                "out_of_range": predicted < task.reference_low,
                "n_items": len(task.selection) if task.task in observed else 0,
                "observed": task.task in observed,
            }
        )
    return pd.DataFrame(rows, columns=[*TASK_SCORE_COLUMNS, "observed"])


def widened(widths: pd.DataFrame, types: Mapping[str, str], tasks: Collection[str]) -> pd.DataFrame:
    """Return half-widths where those of targets with a collapsed task are infinite.

    Args:
        widths: target, half_width, interval_method.
        types: type of every task.
        tasks: the collapsed tasks.
    """
    names = sorted(types)
    touched = np.isin(names, list(tasks))
    weights = target_weights(names, types, with_types=True)
    hit = {target for target, w in weights.items() if (w[touched] > 0).any()}
    rows = pd.DataFrame(
        {"target": sorted(hit), "half_width": float("inf"), "interval_method": METHOD}
    )
    rest = widths.loc[~widths["target"].isin(hit), list(rows.columns)]
    return pd.concat([rest, rows], ignore_index=True)


def _observed_score(task: FittedTask, observed: np.ndarray) -> float:
    """The mean of the outcomes by selection weight, or the official statistic of the selection."""
    weights = task.selection["weight"].to_numpy(dtype=float)
    values = np.asarray(observed, dtype=float)
    if task.kind != "per_item":
        score = estimate_set(task.task_type, values, task.selected_rows, weights, task.statistic)
        return score if np.isfinite(score) else CHANCE
    seen = np.isfinite(values)
    if not (weights[seen].sum() > 0):
        return CHANCE
    return float(np.average(values[seen], weights=weights[seen]))
