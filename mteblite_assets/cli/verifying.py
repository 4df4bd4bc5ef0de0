"""`mteblite verify`: the full run of a candidate beside its prediction."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click
import pandas as pd

from mteblite.lite_scores.aggregation import aggregate
from mteblite.suites.suite_model import SuiteModel
from mteblite.suites.task_types import TaskTypes
from mteblite_assets.cli import printing
from mteblite_assets.cli.materializing import materialize
from mteblite_assets.cli.scoring import registered_name, require_lite_suite, scored
from mteblite_assets.cli.session import Session, UsageError
from mteblite_assets.cli.tables import print_table
from mteblite_assets.cli.terminal import say
from mteblite_assets.graph.keys import Scope
from mteblite_assets.reference_scores.assets import with_own_runs

MACRO_MEAN = "macro mean"
POINTS = ("predicted", "lower", "upper", "full", "error")
ASSET = "candidate_full_scores"
PREDICTED = """
SELECT task, task_type, predicted, lower, upper FROM lite_scores.task_scores
WHERE suite = ? AND model = ? ORDER BY task
"""
MACRO = """
SELECT macro_mean AS predicted, macro_lower AS lower, macro_upper AS upper
FROM lite_scores.suite_scores WHERE suite = ? AND model = ?
"""
FULL = """
SELECT task, main_score FROM reference_scores.candidate_full_scores WHERE suite = ? AND model = ?
"""
PUBLIC = "SELECT * EXCLUDE (pool_task) FROM reference_scores.public_scores WHERE pool_task = ?"


def verify_model(
    session: Session, model: str, suite: str, tasks: tuple[str, ...], *, as_json: bool
) -> int:
    """Print the full scores of a candidate beside the predicted ones; return the exit code.

    Raises:
        UsageError: a task does not exist, the suite is not built, or it is a reference model.
    """
    session.check_scope(Scope(suite, tasks))
    require_lite_suite(session, suite)
    name = registered_name(session, model, suite, None)
    known = session.suite(suite).model(name)
    if known.role == "reference":
        raise UsageError(
            f"{name} is a reference model of suite {suite}: `mteblite report --suite {suite}` "
            "shows its full scores beside the predictions without its family"
        )
    if not scored(session, name, suite, say):
        return 1
    full = _some(session, known, suite, tasks) if tasks else _whole(session, name, suite)
    if full is None:
        return 1
    rows = compared(session, name, suite, full)
    if as_json:
        value = [{k: printing.plain(v) for k, v in row.items()} for row in rows]
        click.echo(json.dumps({"suite": suite, "model": name, "targets": value}))
        return 0
    shown = [{k: v * 100 if k in POINTS else v for k, v in row.items()} for row in rows]
    print_table(shown, f"Full scores of {name} on suite {suite} beside predicted ones (points)")
    inside = [row["inside"] for row in rows if row["target"] != MACRO_MEAN]
    click.echo(f"{sum(inside)} of {len(inside)} full scores lie inside their interval")
    return 0


def compared(
    session: Session, model: str, suite: str, full: dict[str, float]
) -> list[dict[str, Any]]:
    """Return one row per task with a full score, and one of the macro mean where all have one.

    Each has target, predicted, lower, upper, full, error (predicted minus full) and inside.
    """
    query = session.bench.warehouse.query_writer
    tasks = query(PREDICTED, [suite, model])
    rows = [
        _row(r["task"], r["predicted"], r["lower"], r["upper"], full[r["task"]])
        for r in printing.records(tasks)
        if r["task"] in full
    ]
    if set(full) >= set(tasks["task"]):
        parts = {entry.task: entry.part_of for entry in session.suite(suite).tasks}
        types = TaskTypes(dict(zip(tasks["task"], tasks["task_type"], strict=True)), parts)
        scores = tasks[["task"]].assign(predicted=tasks["task"].map(full))
        macro = query(MACRO, [suite, model]).iloc[0]
        true = aggregate(scores, types).macro_mean
        rows.insert(0, _row(MACRO_MEAN, macro.predicted, macro.lower, macro.upper, true))
    return rows


def _row(target: str, predicted: float, lower: float, upper: float, full: float) -> dict[str, Any]:
    return {
        "target": target,
        "predicted": float(predicted),
        "lower": float(lower),
        "upper": float(upper),
        "full": float(full),
        "error": float(predicted - full),
        "inside": bool(lower <= full <= upper),
    }


def _whole(session: Session, model: str, suite: str) -> dict[str, float] | None:
    """Run the asset of the candidate; return its full scores by task, None where it failed."""
    report = materialize(session, Scope(suite, models=(model,), assets=(ASSET, "dbt_reports")))
    for reason in report.problems(ASSET).values():
        click.echo(f"failed: {reason}", err=True)
        return None
    rows = session.bench.warehouse.query_writer(FULL, [suite, model])
    return {str(t): float(s) for t, s in zip(rows["task"], rows["main_score"], strict=True)}


def _some(
    session: Session, model: SuiteModel, suite: str, tasks: tuple[str, ...]
) -> dict[str, float]:
    """Return the full scores of some tasks; they are no partition, so only result files stay."""
    known, full = session.suite(suite), {}
    order = with_own_runs(known.file.reference_scores)
    for task in dict.fromkeys(tasks):
        entry = known.task(task)
        public: pd.DataFrame = session.bench.warehouse.query_writer(PUBLIC, [entry.pool_task])
        found = session.bench.ports.full_scores.full_score(
            entry, model, known.file.max_tokens, order, public, _saying(task)
        )
        if found is not None:
            full[task] = found.main_score
    return full


def _saying(task: str) -> Callable[[str], None]:
    return lambda text: say(f"{task}: {text}")
