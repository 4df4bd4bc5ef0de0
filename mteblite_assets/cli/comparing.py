"""`mteblite score A --against B`: the difference of two models on shared items."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.lite_scores.comparison import Comparison, compare_observed
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.observing import observed_from_rows
from mteblite.suites.task_types import TaskTypes
from mteblite_assets.cli.session import Session

FITTED = "SELECT task, fitted FROM lite_scores.lite_suites WHERE suite = ? ORDER BY task"
OBSERVED = """
SELECT task, item_id, rank, observed FROM lite_scores.selected_observations
WHERE suite = ? AND model = ? ORDER BY task, rank
"""
JOINT = "SELECT joint FROM lite_scores.lite_suite_joint WHERE suite = ?"
WIDTHS = "SELECT * FROM lite_scores.lite_suite_intervals WHERE suite = ?"


def compare(session: Session, first: str, second: str, suite: str) -> Comparison:
    """Return the differences of two scored models."""
    query = session.bench.warehouse.query_writer
    fitted = [FittedTask.from_json(str(text)) for text in query(FITTED, [suite])["fitted"]]
    one, two = (_observed(query(OBSERVED, [suite, m]), fitted) for m in (first, second))
    of_suite = session.suite(suite)
    parts = {entry.task: entry.part_of for entry in of_suite.tasks}
    joint = query(JOINT, [suite])["joint"]
    return compare_observed(
        fitted,
        one,
        two,
        query(WIDTHS, [suite]),
        siblings=of_suite.model(first).family == of_suite.model(second).family,
        types=TaskTypes({t.task: t.task_type for t in fitted}, parts),
        joint=JointCalibration.from_json(str(joint.iloc[0])) if len(joint) else None,
    )


def _observed(rows: pd.DataFrame, fitted: list[FittedTask]) -> dict[str, np.ndarray]:
    """Return by task the observations of a model on the selection, without tasks that have none.

    Raises:
        ValueError: the model was scored on another selection.
    """
    found = {}
    for task in fitted:
        own = rows[rows["task"] == task.task]
        if own.empty:
            continue
        if own["item_id"].tolist() != task.selection["item_id"].tolist():
            raise ValueError(
                f"{task.task}: a model was scored on other items than the present selection: run "
                "`mteblite materialize` for the suite, then compare again"
            )
        found[task.task] = observed_from_rows(own, task.kind)
    return found
