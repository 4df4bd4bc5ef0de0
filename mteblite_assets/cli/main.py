"""`mteblite`: every command is a thin wrapper over the definitions of the UI."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from mteblite_assets.cli import printing
from mteblite_assets.cli.completing import (
    complete_models,
    complete_stages,
    complete_suites,
    complete_tasks,
)
from mteblite_assets.cli.endings import ending_of
from mteblite_assets.cli.exporting import export
from mteblite_assets.cli.home_commands import home
from mteblite_assets.cli.listing import suites, tasks
from mteblite_assets.cli.model_commands import models
from mteblite_assets.cli.querying import sql
from mteblite_assets.cli.session import Session
from mteblite_assets.cli.terminal import say, set_up_terminal
from mteblite_assets.graph.keys import Scope

as_json = click.option("--json", "json_", is_flag=True, help="Print JSON instead of a table.")
suite_option = click.option(
    "--suite", required=True, help="Name of the suite.", shell_complete=complete_suites
)


def narrowing(kind: str, complete: Callable[..., Any]) -> Callable[..., Any]:
    """Return the option that narrows a command to some tasks, models or stages."""
    text = f"Only this {kind} (repeatable)."
    return click.option(f"--{kind}", f"{kind}s", multiple=True, help=text, shell_complete=complete)


def scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that narrow a command to some partitions."""
    for option in (
        click.option("--force", is_flag=True, help="Run fresh partitions, too."),
        click.option(
            "--stage",
            "stages",
            multiple=True,
            help="Only this stage (repeatable).",
            shell_complete=complete_stages,
        ),
        click.option(
            "--model",
            "models",
            multiple=True,
            help="Only this model (repeatable).",
            shell_complete=complete_models,
        ),
        click.option(
            "--task",
            "tasks",
            multiple=True,
            help="Only this task (repeatable).",
            shell_complete=complete_tasks,
        ),
        suite_option,
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="mteblite")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def cli(quiet: bool) -> None:
    """Lite MTEB benchmarks: predict a checkpoint's full score from a few items.

    All state lies in MTEBLITE_HOME (default: .mteblite in the current folder).
    """
    set_up_terminal(quiet)


@cli.command()
@as_json
def quickstart(json_: bool) -> None:
    """Build the `sample` suite end to end and show its leaderboard and validation."""
    from mteblite_assets.cli.quickstart import run_quickstart

    _exit(run_quickstart(Session(), as_json=json_))


@cli.command()
@scope_options
@as_json
def materialize(
    suite: str, tasks: tuple[str, ...], models: tuple[str, ...], stages: tuple[str, ...],
    force: bool, json_: bool,
) -> None:  # fmt: skip
    """Bring partitions up to date: only what is missing or stale runs."""
    from mteblite_assets.cli.materializing import materialize as run
    from mteblite_assets.cli.planning import print_notes

    session = Session()
    report = run(session, Scope(suite, tasks, models, stages), force=force)
    printing.print_report(report, json_, verb="ran")
    print_notes(session.home.notes())
    _exit(0 if report.good else 1)


@cli.command()
@scope_options
@as_json
def plan(
    suite: str, tasks: tuple[str, ...], models: tuple[str, ...], stages: tuple[str, ...],
    force: bool, json_: bool,
) -> None:  # fmt: skip
    """Show what `materialize` would run at most, and why; equal results stop later stages."""
    from mteblite_assets.cli import planning
    from mteblite_assets.cli.materializing import dry_run

    session, scope = Session(reading=True), Scope(suite, tasks, models, stages)
    report = dry_run(session, scope, force=force)
    workload = planning.workload_of(session, scope, report)
    found = session.suite(suite)
    notes = [*planning.notes_of(session, found), *planning.official_notes(session, found)]
    facts = {"workload": workload, "notes": notes}
    printing.print_report(report, json_, verb="would run at most", with_reasons=True, facts=facts)
    if not json_:
        planning.print_workload(workload)
    planning.print_notes(notes)


@cli.command()
@suite_option
@as_json
def status(suite: str, json_: bool) -> None:
    """Show per stage how many partitions are fresh, stale, missing or failed."""
    from mteblite_assets.cli.materializing import status as states
    from mteblite_assets.cli.planning import notes_of, print_notes

    session = Session(reading=True)
    session.suite(suite)
    printing.print_status(states(session, suite), json_)
    print_notes(notes_of(session, session.suite(suite)))


@cli.command()
@click.argument("model", shell_complete=complete_models)
@click.option("--suite", help="Name of the suite.", shell_complete=complete_suites)
@click.option("--release", help="Folder that `export` wrote; needs no home and no suite.")
@click.option("--family", help="Family to register it under; default: its name.")
@click.option(
    "--against",
    help="Another model: print MODEL minus this one on shared items.",
    shell_complete=complete_models,
)
@click.option("--siblings", is_flag=True, help="Both models are of one family (with --release).")
@click.option("--data", multiple=True, help="TASK=FOLDER: your own data of a release (repeatable).")
@as_json
def score(
    model: str, suite: str | None, release: str | None, family: str | None, against: str | None,
    siblings: bool, data: tuple[str, ...], json_: bool,
) -> None:  # fmt: skip
    """Score MODEL (hub name, folder or registered name) on the lite selection only."""
    from mteblite_assets.cli.release_scoring import check_options, score_from_release

    check_options(suite, release, family, data, siblings)
    if release is not None:
        _exit(
            score_from_release(
                model, release, data, against=against, siblings=siblings, as_json=json_, say=say
            )
        )
    from mteblite_assets.cli.scoring import score_model

    session = Session()
    _exit(score_model(session, model, str(suite), family, against=against, as_json=json_, say=say))


@cli.command()
@click.argument("model", shell_complete=complete_models)
@narrowing("task", complete_tasks)
@suite_option
@as_json
def verify(model: str, suite: str, tasks: tuple[str, ...], json_: bool) -> None:
    """Run candidate MODEL on the full tasks; print its full scores beside the predicted ones.

    The full scores of a whole suite are kept and shown in the reports. With --task, mteb's result
    files are kept; a later run of the whole suite uses them.
    """
    from mteblite_assets.cli.verifying import verify_model

    _exit(verify_model(Session(), model, suite, tasks, as_json=json_))


@cli.command()
@suite_option
@as_json
def report(suite: str, json_: bool) -> None:
    """Build the dbt reports and print where they are."""
    from mteblite_assets.cli.materializing import materialize as run

    session = Session()
    session.suite(suite)
    done = run(session, Scope(suite, stages=("dbt_reports",)), force=True)
    if json_:
        printing.print_report(done, json_, verb="ran")
    else:
        printing.print_suite(session, suite)
        click.echo(f"tables lite_leaderboard and validation_summary in {session.home.snapshot}")
        click.echo(f"dbt artifacts in {session.home.dbt}")
        for reasons in done.failed.values():
            for reason in reasons.values():
                _note(f"failed: {reason}")
        for check in done.failed_checks:
            _note(f"failed check: {check}")
    _exit(0 if done.good else 1)


@cli.command()
@click.option("--port", default=3000, show_default=True, help="Port of the UI.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the UI.")
def dev(port: int, host: str) -> None:
    """Start the Dagster UI and daemon on this home."""
    from mteblite_assets.cli.serving import serve

    _exit(serve(Session(), host, port))


cli.add_command(export)
cli.add_command(home)
cli.add_command(models)
cli.add_command(sql)
cli.add_command(suites)
cli.add_command(tasks)


def main() -> None:
    """Run the command line: 0 done, 1 a run or check failed, 2 bad usage or bad input."""
    try:
        # Without standalone mode, click returns the code of an Exit instead of exiting with it.
        sys.exit(cli.main(prog_name="mteblite", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except BaseException as error:
        ending = ending_of(error)
        if ending is None:
            raise
        _end(*ending)


def _end(message: str, code: int) -> NoReturn:
    _note(message)
    sys.exit(code)


def _exit(code: int) -> None:
    raise click.exceptions.Exit(code)


def _note(text: str) -> None:
    click.echo(text, err=True)
