"""The workload of a plan, and notes on tasks and models that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from mteblite.suites.catalog import Suite
from mteblite.task_types.workload import Workload, estimate_workload
from mteblite.tasks.descriptive_stats import task_statistics
from mteblite_assets.cli.materializing import Report
from mteblite_assets.cli.printing import records, shortened
from mteblite_assets.cli.session import Session
from mteblite_assets.graph.keys import Scope

OFFICIAL = "SELECT pool_task, model FROM reference_scores.public_scores WHERE refused = ''"
EMBEDDINGS = "embedding_stats"
SHOWN = 8


def workload_of(session: Session, scope: Scope, report: Report) -> dict[str, Any]:
    """Return estimates of texts and tokens of the pools of a scope, and of those to encode.

    They follow from mteb's descriptive statistics. Texts of several pools count in each of them,
    and texts that a killed run has encoded count as texts to encode.
    """
    suite = session.suite(scope.suite)
    pools: dict[str, Workload] = {}
    unknown, tasks = [], []
    for entry in suite.tasks:
        if (scope.tasks and entry.task not in scope.tasks) or entry.description is None:
            continue
        statistics = task_statistics(entry.task, entry.description.task_type)
        found = estimate_workload(
            entry.description, statistics, suite.pool_settings(entry), suite.file.max_tokens
        )
        if found is None:
            unknown.append(entry.task)
            continue
        pools[entry.pool_task] = found
        tasks.append({"task": entry.task, "texts": found.texts, "tokens": found.tokens})
    encoded = _to_encode(suite, report, pools)
    return {
        "texts": sum(w.texts for w in pools.values()),
        "tokens": sum(w.tokens for w in pools.values()),
        "texts_to_encode": sum(w.texts for w in encoded),
        "tokens_to_encode": sum(w.tokens for w in encoded),
        "tasks": tasks,
        "unknown": unknown,
    }


def notes_of(session: Session, suite: Suite) -> list[str]:
    """Return notes on places, left-out tasks, absent models and another version of mteb."""
    installed = session.bench.ports.tasks.mteb_version
    notes = session.home.notes()
    notes += [f"task {x.task} is left out: {x.reason}" for x in suite.left_out]
    absent = [m.name for m in suite.absent()]
    if absent:
        notes.append(
            f"{len(absent)} listed models are skipped, because this home has no weights of them "
            f"({', '.join(shortened(absent, SHOWN))}): "
            f"`mteblite models add NAME --suite {suite.name} --path FOLDER`"
        )
    versions = sorted({e.frozen_with for e in suite.tasks if e.frozen_with} - {installed})
    if versions:
        notes.append(
            f"the tasks were frozen with mteb {', '.join(versions)}; mteb {installed} is installed"
        )
        notes += [
            f"mteb {installed} differs: {d['task']}: {d['what']} was {d['frozen']!r}, is "
            f"{d['found']!r}; accept with `mteblite tasks --suite {suite.name} --refresh`"
            for d in _known_differences(session, suite.name)
        ]
    return notes


def official_notes(session: Session, suite: Suite) -> list[str]:
    """Return a note on missing full scores of a suite that takes them from `official` alone."""
    import duckdb

    if list(suite.file.reference_scores) != ["official"]:
        return []
    pools = {e.pool_task: e.task for e in suite.tasks}
    try:
        rows = session.bench.warehouse.query(OFFICIAL)
    except (FileNotFoundError, duckdb.CatalogException):
        rows = None
    if rows is None or not set(rows["pool_task"]) & set(pools):
        return [
            "the official scores of this suite have not been read yet: `mteblite materialize "
            f"--suite {suite.name} --stage suites --stage reference_scores` reads them, then "
            "`plan` says which are missing"
        ]
    known = set(zip(rows["pool_task"], rows["model"], strict=True))
    missing = {
        m.name: [task for pool, task in pools.items() if m.deviation or (pool, m.base) not in known]
        for m in suite.references()
    }
    lacking = {name: tasks for name, tasks in missing.items() if tasks}
    if not lacking:
        return []
    first, tasks = next(iter(lacking.items()))
    return [
        f"{len(lacking)} of {len(missing)} reference models have no official score on some tasks, "
        f"and do not enter these: {first} on {', '.join(shortened(tasks, 3))}"
        + (" ..." if len(lacking) > 1 else "")
        + "; add `local` or `run` to `reference_scores`"
    ]


def print_notes(notes: Iterable[str]) -> None:
    """Print notes to stderr."""
    for note in notes:
        click.echo(f"note: {note}", err=True)


def print_workload(workload: Mapping[str, Any]) -> None:
    """Print texts and tokens in one line, or that they are not known."""
    unknown = ", ".join(shortened(workload["unknown"], SHOWN))
    if not workload["tasks"]:
        if unknown:
            click.echo(f"pools: mteb has no statistics of {unknown}; texts are counted when drawn")
        return
    line = (
        f"pools: about {workload['texts']:,} texts, {workload['tokens']:,} tokens a model; "
        f"to encode: {workload['texts_to_encode']:,} texts, "
        f"{workload['tokens_to_encode']:,} tokens over all models"
    )
    if workload["unknown"]:
        line += f"; without {unknown}, for which mteb has no statistics"
    click.echo(line)


def _to_encode(suite: Suite, report: Report, pools: Mapping[str, Workload]) -> list[Workload]:
    """Return the pools to encode, once per checkpoint: its variants share their vectors."""
    plan = report.plans.get(EMBEDDINGS)
    specs = {m.name: m for m in suite.references()}
    wanted = set()
    for key in plan.run if plan else []:
        model, pool = key.split("|", 1)
        if pool in pools and model in specs:
            wanted.add((specs[model].base, specs[model].strategy, pool))
    return [pools[pool] for *_, pool in wanted]


def _known_differences(session: Session, suite: str) -> list[dict[str, Any]]:
    import duckdb

    try:
        found = session.bench.warehouse.query(
            "SELECT task, what, frozen, found FROM suites.mteb_differences WHERE suite = ? "
            "AND mteb_version = ? ORDER BY task, what",
            [suite, session.bench.ports.tasks.mteb_version],
        )
    except (FileNotFoundError, duckdb.CatalogException):  # no warehouse, or one of an old version
        return []
    return records(found)
