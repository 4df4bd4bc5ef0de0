"""The warehouse against its ledger, and the snapshot against the writer's file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import duckdb

from mteblite_assets.flow import declarations
from mteblite_assets.graph.damage import Damage, damage_of, record_contents
from mteblite_assets.graph.requirements import Ledger
from mteblite_resources.database.ledger import read_ledger
from mteblite_resources.database.row_facts import table_facts
from mteblite_resources.stored_files import REPAIR, Finding
from mteblite_resources.warehouse import Warehouse


def check_rows(warehouse: Warehouse) -> list[Finding]:
    """Compare the rows of every partition with what the ledger says was made."""
    found: list[Damage] = []
    unknown: dict[str, list[str]] = defaultdict(list)
    n_made = 0
    with warehouse.session() as connection:
        ledger = read_ledger(connection)
        for asset, keys in _made(ledger).items():
            n_made += len(keys)
            damaged = damage_of(connection, declarations()[asset], keys, ledger)
            found += damaged
            bad = {d.key for d in damaged}
            unknown[asset] += [
                k for k in keys if k not in bad and ledger[asset, k]["content"] is None
            ]
    findings = [_damage(d) for d in found]
    findings.append(Finding(f"rows of {n_made - len(found)} partitions", "good"))
    n_unknown = sum(map(len, unknown.values()))
    if n_unknown:
        what = f"{n_unknown} of them of an earlier version, counted only ({REPAIR} notes hashes)"
        findings.append(Finding(what, "good", mend=lambda: _record(warehouse, unknown)))
    return findings


def check_snapshot(warehouse: Warehouse) -> Iterator[Finding]:
    """Compare the snapshot with the writer's file, row by row."""
    what = f"snapshot {warehouse.snapshot}"
    problem = _snapshot_problem(warehouse)
    if not problem:
        yield Finding(what, "good")
        return

    def publish() -> str:
        warehouse.publish(anew=True)
        return "published again"

    yield Finding(what, problem, f"{REPAIR} publishes it again", publish)


def _snapshot_problem(warehouse: Warehouse) -> str:
    if not warehouse.snapshot.exists():
        return "is not there"
    if not warehouse.is_published():
        return "is older than the writer's file, or cannot be opened"
    with warehouse.session() as connection:
        own = connection.execute("SELECT current_database()").fetchall()[0][0]
        quoted = str(warehouse.snapshot).replace("'", "''")
        try:
            connection.execute(f"ATTACH '{quoted}' AS published (READ_ONLY)")
            there = table_facts(connection, "published")
        except duckdb.Error as error:
            return f"cannot be read: {str(error).splitlines()[0]}"
        made = table_facts(connection, own)
    other = sorted(t for t in {*made, *there} if made.get(t) != there.get(t))
    return f"somebody changed {', '.join(other[:3])} in it" if other else ""


def _damage(damage: Damage) -> Finding:
    what = f"{damage.asset} {damage.key}"
    if declarations()[damage.asset].keeps_rows:
        todo = "nothing makes them again: `mteblite.previous.duckdb` or a copy of the home has them"
        return Finding(what, damage.what, todo)
    todo = f"{REPAIR} marks it; the next `mteblite materialize` makes it again"
    return Finding(what, damage.what, todo, lambda: "", damage.asset, damage.key)


def _made(ledger: Ledger) -> dict[str, list[str]]:
    made: dict[str, list[str]] = defaultdict(list)
    for (asset, key), entry in ledger.items():
        if entry["status"] == "ok" and asset in declarations() and declarations()[asset].tables:
            made[asset].append(key)
    return made


def _record(warehouse: Warehouse, unknown: Mapping[str, Sequence[str]]) -> str:
    with warehouse.session() as connection:
        for asset, keys in unknown.items():
            record_contents(connection, declarations()[asset], keys)
    return "hashes noted"
