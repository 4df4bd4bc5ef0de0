"""`mteblite suites` and `mteblite tasks`: what is defined."""

from __future__ import annotations

from functools import partial

import click

from mteblite_assets.cli import printing
from mteblite_assets.cli.completing import complete_suites
from mteblite_assets.cli.session import Session


@click.command()
@click.option("--json", "json_", is_flag=True, help="Print JSON instead of a table.")
def suites(json_: bool) -> None:
    """List the suites."""
    catalog = Session(reading=True).catalog
    rows = [
        {
            "name": s.name,
            # The parts of an aggregate count as one task, as in the benchmark.
            "tasks": len({e.part_of or e.task for e in s.tasks}) or None,
            "benchmark": s.file.benchmark,
            "types": len({e.description.task_type for e in s.tasks if e.description}) or None,
            "k": s.file.k,
            "references": len(s.references()),
            "absent": len(s.absent()),
            "candidates": len(s.candidates()),
            "description": s.file.description,
            "file": s.origin,
        }
        for s in catalog.suites.values()
    ]
    printing.emit(rows, json_, drop=("file", "benchmark", "absent", "candidates"))
    for problem in catalog.problems.values():
        click.echo(f"warning: {problem}", err=True)


@click.command()
@click.option("--suite", required=True, help="Name of the suite.", shell_complete=complete_suites)
@click.option("--refresh", is_flag=True, help="Resolve the tasks with the installed mteb again.")
@click.option("--json", "json_", is_flag=True, help="Print JSON instead of a table.")
def tasks(suite: str, refresh: bool, json_: bool) -> None:
    """List a suite's tasks with type, metric, split and subsets."""
    from mteblite_assets.cli.planning import notes_of, print_notes

    session = Session(reading=not refresh)
    resolved = (
        session.refresh(suite, partial(click.echo, err=True)) if refresh else session.resolve(suite)
    )
    rows = [
        {
            "task": e.task,
            "type": e.description.task_type,
            "main_metric": e.description.main_metric,
            "splits": list(e.description.splits),
            "hf_subsets": list(e.description.hf_subsets)
            if json_
            else printing.shortened(e.description.hf_subsets),
            "k": e.k,
            "source": e.description.source,
            "mteb_version": e.frozen_with,
        }
        for e in resolved.tasks
        if e.description is not None
    ]
    printing.emit(rows, json_, drop=("mteb_version", "source", "splits", "hf_subsets"))
    print_notes(notes_of(session, resolved))
