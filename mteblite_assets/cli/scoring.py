"""Score one model on a suite's lite selection, and print the prediction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from mteblite.models.checkpoint_folder import checkpoint_folder
from mteblite.names import did_you_mean
from mteblite.suites.suite_model import SuiteModel
from mteblite_assets.cli import printing
from mteblite_assets.cli.comparing import compare
from mteblite_assets.cli.materializing import materialize
from mteblite_assets.cli.registering import add_model, remove_models
from mteblite_assets.cli.score_printing import print_comparison, print_scores
from mteblite_assets.cli.session import NO_LITE_SUITE, Session, UsageError
from mteblite_assets.graph.keys import Scope
from mteblite_assets.graph.runs import SCORES

TASKS = """
SELECT task, task_type, predicted, lower, upper, n_items, out_of_range, observed, interval_method
FROM lite_scores.task_scores WHERE suite = ? AND model = ? ORDER BY task
"""
SUITE = """
SELECT mean, mean_lower, mean_upper, macro_mean, macro_lower, macro_upper, type_means, n_tasks,
    n_texts, n_encoded, seconds, interval_method, out_of_range, coalesce(warnings, '') AS warnings
FROM lite_scores.suite_scores WHERE suite = ? AND model = ?
"""
LEVELS = "SELECT any_value(level) AS level FROM lite_scores.lite_suite_intervals WHERE suite = ?"
TYPES = """
SELECT task_type, predicted, lower, upper, out_of_range, interval_method
FROM lite_scores.type_scores WHERE suite = ? AND model = ? ORDER BY task_type
"""


def score_model(
    session: Session,
    model: str,
    suite: str,
    family: str | None,
    *,
    against: str | None = None,
    as_json: bool,
    say: Callable[[str], None],
) -> int:
    """Score a model and print its lite scores; an unregistered model becomes a candidate.

    One that cannot be scored does not stay registered, because later runs would meet it again.
    With `against`, score both models and print the difference instead.
    """
    require_lite_suite(session, suite)
    known = {m.name for m in session.suite(suite).models}
    names = [
        registered_name(session, m, suite, family if m == model else None)
        for m in (model, against)
        if m is not None
    ]
    for name in names:
        if not scored(session, name, suite, say):
            if name not in known:
                remove_models(session, suite, name)
                click.echo(f"note: {name} is not registered with suite {suite}", err=True)
            return 1
    if against is None:
        _print(session, names[0], suite, as_json)
    else:
        found = compare(session, names[0], names[1], suite)
        query = session.bench.warehouse.query_writer
        said = [str(query(SUITE, [suite, name])["warnings"].iloc[0]) for name in names]
        print_comparison(found, names[0], names[1], suite=suite, warnings=said, as_json=as_json)
    return 0


def scored(session: Session, name: str, suite: str, say: Callable[[str], None]) -> bool:
    """Score a registered model where its scores are missing or stale; print why that failed."""
    if _is_gone(session, name, suite):
        return True
    if name not in {m.name for m in session.suite(suite).candidates()}:
        say(f"{name} is a reference model, which the selection was fitted on")
    scope = Scope(suite, models=(name,), assets=SCORES)
    report = materialize(session, scope)
    if report.unusable:  # somebody asks for it by name: it is tried again
        report = materialize(session, scope, force=True)
    problems = report.problems("lite_scores")
    for reason in report.problems("dbt_reports").values():
        click.echo(f"note: the reports are not up to date: {reason}", err=True)
    for reason in problems.values():
        click.echo(f"failed: {reason}", err=True)
    return not problems


def _is_gone(session: Session, name: str, suite: str) -> bool:
    """Say whether a scored model's folder is gone, and that its stored scores are shown."""
    path = session.suite(suite).model(name).path
    if path is None or Path(path).is_dir():
        return False
    if session.bench.warehouse.query_writer(SUITE, [suite, name]).empty:
        return False
    click.echo(f"note: the folder {path} of {name} is gone; these scores are stored", err=True)
    return True


def require_lite_suite(session: Session, suite: str) -> None:
    """Refuse a suite that has no lite selection yet."""
    session.suite(suite)
    try:
        ready = session.bench.warehouse.query_writer(
            "SELECT count(*) AS n FROM lite_scores.lite_suites WHERE suite = ?", [suite]
        )["n"].iloc[0]
    except FileNotFoundError:
        ready = 0
    if not ready:
        raise UsageError(NO_LITE_SUITE.format(suite=suite, reason=""))


def registered_name(session: Session, model: str, suite: str, family: str | None) -> str:
    """Return the name of the model that an argument means; registers a new one as a candidate."""
    known = {m.name: m for m in session.suite(suite).models}
    if model in known:
        return model
    folder = checkpoint_folder(model)
    if folder is not None:
        name, place = folder
        plain = (m for m in known.values() if not m.deviation and m.prompts is None)
        name = next((m.name for m in plain if m.path == place), name)
        if name in known and known[name].path != place:
            raise UsageError(
                f"the suite has another model named {name!r} ({known[name].path}): register this "
                f"one under another name with `mteblite models add NAME --path {model}`"
            )
        return add_model(session, suite, name, family=family, path=place).name
    # Before registration, because a misspelled name would fail every later run of the suite.
    spec = SuiteModel.named(model, family)
    try:
        session.bench.ports.models.identify(spec)
    except ValueError as error:
        near = did_you_mean(model, known)
        raise UsageError(f"{error}; {near}" if near else str(error)) from error
    return add_model(session, suite, model, family=family).name


def _print(session: Session, name: str, suite: str, as_json: bool) -> None:
    query = session.bench.warehouse.query_writer
    tasks = printing.records(query(TASKS, [suite, name]))
    total = printing.records(query(SUITE, [suite, name]))[0]
    types = printing.records(query(TYPES, [suite, name]))
    total.pop("type_means")
    total["level"] = float(query(LEVELS, [suite])["level"].iloc[0])
    head = {"suite": suite, "model": name, "headline": session.suite(suite).file.headline}
    print_scores(head, tasks, types, total, as_json=as_json)
