"""`mteblite sql`: read-only SQL over the warehouse."""

from __future__ import annotations

import click

from mteblite_assets.cli import printing
from mteblite_assets.cli.session import Session, UsageError


@click.command()
@click.argument("query")
@click.option("--json", "json_", is_flag=True, help="Print JSON instead of a table.")
def sql(query: str, json_: bool) -> None:
    """Run read-only SQL over the warehouse."""
    import duckdb

    session = Session(reading=True)
    try:
        frame = session.bench.warehouse.query(query)
    except FileNotFoundError as error:
        raise UsageError(str(error)) from error
    except duckdb.Error as error:  # a damaged or locked file has an error of its own
        reason = "\n".join(line for line in str(error).splitlines() if line.strip())
        raise UsageError(f"the warehouse refused the query: {reason}") from error
    printing.emit(printing.records(frame), json_)
    if not json_ and frame.empty:
        click.echo("(no rows; columns: " + ", ".join(map(str, frame.columns)) + ")")
