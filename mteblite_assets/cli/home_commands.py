"""`mteblite home`: verify what a home stores, mend what can be mended, restore the warehouse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from mteblite_assets.cli.session import Session, UsageError
from mteblite_assets.cli.tables import print_table

if TYPE_CHECKING:
    from mteblite_resources.stored_files import Finding


@dataclass(frozen=True)
class Row:
    """A line of the table: what was checked, how it is, what to do or what was done."""

    what: str
    state: str
    todo: str
    mended: bool

    @property
    def good(self) -> bool:
        """Whether nothing is wrong, or no more."""
        return self.state == "good" or self.mended


@click.group()
def home() -> None:
    """Verify what the home stores, or restore its warehouse."""


@home.command()
@click.option("--repair", is_flag=True, help="Mend what can be mended without computing.")
@click.option("--json", "json_", is_flag=True, help="Print JSON instead of a table.")
def check(repair: bool, json_: bool) -> None:
    """Verify everything that the home stores; exit code 1 where something is wrong."""
    session = Session(reading=not repair)
    if repair and session.bench.warehouse.is_running():
        raise UsageError("a run goes on in this home: repair when it has ended")
    rows = list(_rows(session, repair=repair))
    if json_:
        click.echo(json.dumps([{**vars(row), "good": row.good} for row in rows]))
    else:
        print_table([{"what": r.what, "state": r.state} for r in rows if r.state == "good"])
        for row in rows:
            if row.state != "good":
                word = "mended" if row.mended else "wrong"
                click.echo(f"{word}: {row.what}: {row.state}")
                click.echo(f"  {row.todo}")
    raise click.exceptions.Exit(0 if all(row.good for row in rows) else 1)


@home.command()
def restore() -> None:
    """Make the writer's file again from the newest whole snapshot."""
    session = Session()
    source = session.bench.warehouse.restore()
    click.echo(f"{session.home.writer} is restored from {source.name}")


def _rows(session: Session, *, repair: bool) -> Iterator[Row]:
    root = f"{session.home.root}/"
    for finding in _findings(session):
        mend = finding.mend if repair else None
        mended = mend is not None
        done = [mend()] if mend is not None else []
        if mended and finding.asset:
            _mark(session, finding)
            done.append(
                f"{finding.asset} {finding.key} is marked: the next `mteblite materialize` makes "
                "it again"
            )
        what, state = (text.replace(root, "") for text in (finding.what, finding.state))
        yield Row(what, state, "; ".join(filter(None, done)) or finding.todo, mended)


def _mark(session: Session, finding: Finding) -> None:
    from mteblite_assets.graph.damage import Damage, mark_damaged

    with session.bench.warehouse.session() as connection:
        mark_damaged(connection, [Damage(finding.asset, finding.key, finding.state)])


def _findings(session: Session) -> Iterator[Finding]:
    """Check one thing after the other; the snapshot last, after what changes the writer's file."""
    from mteblite_resources.stored_files import (
        Finding,
        check_dagster,
        check_records,
        check_releases,
        check_scratch,
        check_vectors,
    )

    place = session.home
    yield from check_records(place)
    for file, problem in session.catalog.problems.items():
        yield Finding(f"suite file {file}", problem, "mend the file; it is not read until then")
    yield from check_dagster(place)
    yield from check_vectors(place)
    yield from check_releases(place)
    yield from check_scratch(place)
    if not place.writer.exists() and not place.snapshot.exists():
        yield Finding("warehouse", "good")  # nothing was made yet
        return
    try:
        session.bench.warehouse.ledger()
    except RuntimeError as error:
        yield Finding(f"warehouse {place.writer}", str(error), "do what its state says")
        return
    yield from _warehouse_findings(session)


def _warehouse_findings(session: Session) -> Iterator[Finding]:
    from mteblite_assets.graph.warehouse_checks import check_rows, check_snapshot
    from mteblite_resources.stored_files import check_observations, check_official, check_pools

    warehouse = session.bench.warehouse
    yield from check_rows(warehouse)
    for part in (check_pools, check_observations):
        with warehouse.session() as connection:
            found = list(part(session.home, connection))
        yield from found
    yield from check_official(warehouse, session.bench.ports.full_scores.sources.location)
    yield from check_snapshot(warehouse)
