"""`mteblite models`: list, add and remove the models of a suite."""

from __future__ import annotations

from typing import Any

import click

from mteblite_assets.cli import printing
from mteblite_assets.cli.completing import complete_models, complete_suites
from mteblite_assets.cli.session import Session, UsageError


@click.group(invoke_without_command=True)
@click.option("--suite", help="Name of the suite.", shell_complete=complete_suites)
@click.option("--json", "json_", is_flag=True, help="Print JSON instead of a table.")
@click.pass_context
def models(context: click.Context, suite: str | None, json_: bool) -> None:
    """List a suite's models, or `add` and `remove` one."""
    if context.invoked_subcommand is not None:
        return
    from mteblite_assets.cli.registering import problems_of

    if suite is None:
        raise UsageError("`mteblite models` needs --suite NAME")
    session = Session(reading=True)
    found = session.suite(suite)
    problems = problems_of(session, found)
    rows = [
        {
            "model": m.name,
            "family": m.family,
            "role": m.role,
            "path": m.path,
            "prompt_strategy": m.prompt_strategy,
            "provenance": m.provenance,
            "weights": m.has_weights,
            "problem": problems.get(m.name),
        }
        for m in sorted(found.models, key=lambda m: (m.role, m.name))
    ]
    printing.emit(rows, json_, drop=("prompt_strategy", "provenance"))


@models.command("add")
@click.argument("name", shell_complete=complete_models)
@click.option("--suite", required=True, help="Name of the suite.", shell_complete=complete_suites)
@click.option("--family", help="Models that share weights or training; default: the name.")
@click.option("--role", type=click.Choice(["reference", "candidate"]), help="Default: candidate.")
@click.option("--path", help="Folder of a local sentence-transformers checkpoint.")
@click.option("--revision", help="Revision on the hub.")
@click.option("--normalize", is_flag=True, help="L2-normalise the vectors.")
@click.option("--truncate-dim", type=int, help="Keep the first N dimensions, renormalised.")
@click.option("--prompt", "prompts", multiple=True, help="KEY=TEXT, e.g. query='query: '.")
@click.option(
    "--prompt-strategy",
    type=click.Choice(["task", "category", "none"]),
    help="Use only prompts of single tasks, only of task types and query/document, or none.",
)
@click.option(
    "--provenance",
    type=click.Choice(["self_reported", "partly_self_reported"]),
    help="Its full scores were (partly) measured by its authors; reports mark them.",
)
@click.option("--trust-remote-code", is_flag=True, help="Let the model run its own Python code.")
def models_add(name: str, suite: str, **options: Any) -> None:
    """Register a model with a suite; the next `materialize` scores it.

    A model of the suite file keeps its family, role and other options unless they are given:
    `--path FOLDER` alone adds the weights of a listed private checkpoint.
    """
    from mteblite_assets.cli.registering import add_model

    model = add_model(Session(), suite, name, **options)
    click.echo(f"{model.name}: {model.role} of suite {suite}, family {model.family}")


@models.command("remove")
@click.argument("name", shell_complete=complete_models)
@click.option("--suite", required=True, help="Name of the suite.", shell_complete=complete_suites)
def models_remove(name: str, suite: str) -> None:
    """Remove a model, or all that a pattern like 'run-7/*' matches; vectors stay in the store."""
    from mteblite_assets.cli.registering import remove_models

    for gone in remove_models(Session(), suite, name):
        click.echo(f"{gone}: no longer in suite {suite}")
