"""`mteblite score A --against B`: the difference of two models on the items that they share."""

from __future__ import annotations

import json
from typing import Any

import click
import numpy as np
import pandas as pd

from mteblite.calibrations.task_model import FittedTask
from mteblite.lite_scores.joint_scores import JointRelease
from mteblite.lite_scores.model_scores import read_release
from mteblite.lite_scores.observing import observed_from_rows
from mteblite.lite_scores.pairing import Difference, paired_differences
from mteblite.lite_scores.release import fitted_from_json
from mteblite.suites.task_types import TaskTypes
from mteblite.validation.conformal import LEVEL
from mteblite_assets.cli import printing
from mteblite_assets.cli.session import Session

RELEASED = "SELECT task, fitted FROM lite_scores.lite_suites WHERE suite = ? ORDER BY task"
OBSERVED = """
SELECT task, item_id, rank, observed FROM lite_scores.selected_observations
WHERE suite = ? AND model = ? ORDER BY task, rank
"""
JOINT = "SELECT joint FROM lite_scores.lite_suite_joint WHERE suite = ?"
LEVELS = "SELECT any_value(level) AS level FROM lite_scores.lite_suite_intervals WHERE suite = ?"


def compare(session: Session, first: str, second: str, suite: str) -> dict[str, Any]:
    """Return the differences of two models that have been scored.

    Returns:
        suite, model, against, level, joint (whether a joint calibration tells the differences of
        tasks that were not scored), not_scored (tasks that one of them lacks: then there is no
        mean over all tasks, unless joint), and differences: one row per target (`macro`, `mean`,
        `type:<type>`, `task:<name>`) with difference, lower, upper, probability (that the first
        is better) and verdict (`better`, `worse`, `undecided`).
    """
    query = session.bench.warehouse.query
    fitted = [fitted_from_json(str(text)) for text in query(RELEASED, [suite])["fitted"]]
    observed = [_observed(query(OBSERVED, [suite, m]), fitted) for m in (first, second)]
    shared = [t for t in fitted if all(t.task in o for o in observed)]
    stored = query(LEVELS, [suite])["level"].iloc[0]
    level = LEVEL if pd.isna(stored) else float(stored)
    parts = {entry.task: entry.part_of for entry in session.suite(suite).tasks}
    types = TaskTypes({t.task: t.task_type for t in shared}, parts)
    stored_joint = query(JOINT, [suite])["joint"]
    release = read_release(str(stored_joint.iloc[0])) if len(stored_joint) else None
    found = (
        paired_differences(shared, *observed, level=level, types=types, release=release)
        if shared
        else {}
    )
    joint = isinstance(release, JointRelease)
    whole = set(found) if joint else _whole_targets(fitted, {t.task for t in shared})
    return {
        "suite": suite,
        "model": first,
        "against": second,
        "level": level,
        "joint": joint,
        "not_scored": sorted({t.task for t in fitted} - {t.task for t in shared}),
        "differences": [_row(t, d) for t, d in found.items() if t in whole],
    }


def print_comparison(value: dict[str, Any], as_json: bool) -> None:
    """Print what `compare` returned."""
    if as_json:
        click.echo(json.dumps(value))
        return
    scores = ("difference", "lower", "upper")
    rows = [
        {k: round(v * 100, 2) if k in scores else v for k, v in row.items()}
        for row in value["differences"]
    ]
    title = (
        f"{value['model']} minus {value['against']} on suite {value['suite']} "
        "(points, on the items that both were scored on)"
    )
    printing.print_table(rows, title)
    if value["not_scored"]:
        click.echo(
            f"warning: {', '.join(value['not_scored'])} could not be scored for both models; "
            + ("told by the other tasks" if value["joint"] else "means that need them are left out")
        )
    click.echo(f"{value['level']:.0%} intervals over redrawn items; `undecided` where they hold 0")


def _observed(rows: pd.DataFrame, fitted: list[FittedTask]) -> dict[str, np.ndarray]:
    """By task what a model did on the released selection; tasks it was not scored on are left out.

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
                f"{task.task}: a model was scored on other items than the suite selects now: run "
                "`mteblite materialize` for the suite and compare again"
            )
        found[task.task] = observed_from_rows(own, task.kind)
    return found


def _whole_targets(fitted: list[FittedTask], shared: set[str]) -> set[str]:
    """Targets all of whose tasks are shared: a mean is never over other tasks than the suite's."""
    targets = {f"task:{name}" for name in shared}
    by_type: dict[str, list[str]] = {}
    for task in fitted:
        by_type.setdefault(task.task_type, []).append(task.task)
    targets |= {f"type:{kind}" for kind, tasks in by_type.items() if set(tasks) <= shared}
    return targets | {"macro", "mean"} if len(shared) == len(fitted) else targets


def _row(target: str, found: Difference) -> dict[str, Any]:
    same = found.value == found.lower == found.upper == 0.0
    verdict = "better" if found.lower > 0 else "worse" if found.upper < 0 else "undecided"
    return {
        "target": target,
        "difference": found.value,
        "lower": found.lower,
        "upper": found.upper,
        "probability": 0.5 if same else found.share_positive,
        "verdict": verdict,
    }
