"""Rows of the warehouse that are not those that were made: noticed, and marked to be made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pandas as pd

from mteblite_assets.flow import declarations
from mteblite_assets.graph.declaration import Declaration
from mteblite_assets.graph.keys import columns_of, key_sql, upstream_keys
from mteblite_assets.graph.requirements import Ledger
from mteblite_assets.graph.work import SettingsContext
from mteblite_resources.database.ledger import read_ledger, write_ledger
from mteblite_resources.database.row_facts import hashed_rows, other_counts

MARK = "damaged: "
"""Begin of the reason of a partition that was made and is not as it was made."""


@dataclass(frozen=True)
class Damage:
    """A partition that is not as it was made, and how it differs."""

    asset: str
    key: str
    what: str

    def __str__(self) -> str:
        return f"{self.asset} {self.key}: {self.what}"


class DamagedRowsError(ValueError):
    """Inputs of a partition are not as they were made."""

    def __init__(self, found: Sequence[Damage]) -> None:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        super().__init__(
            f"its input {found[0]}{more}; `mteblite materialize` of the suite makes it again"
        )
        self.found = found


def check_counts(
    upstream: Declaration, keys: Sequence[str], rows: Mapping[str, pd.DataFrame], ledger: Ledger
) -> None:
    """Compare the rows that were read of some partitions with the numbers that were made.

    Raises:
        DamagedRowsError: they differ.
    """
    made = {k: e["n_rows"] for k, e in _made(upstream, keys, ledger)}
    counted: Counter[tuple[str, ...]] = Counter()
    for table in upstream.tables if made else ():
        names = list(columns_of(upstream.grain, keys[0]))
        sizes = rows[table].groupby(names, observed=True, dropna=False).size()
        for key, size in sizes.items():
            counted[key if isinstance(key, tuple) else (key,)] += int(size)
    found = []
    for key, n_rows in made.items():
        there = counted[tuple(columns_of(upstream.grain, key).values())]
        if there != n_rows:
            found.append(Damage(upstream.name, key, _counts(there, n_rows)))
    if found:
        raise DamagedRowsError(found)


def check_contents(
    connection: duckdb.DuckDBPyConnection,
    declaration: Declaration,
    key: str,
    context: SettingsContext,
    ledger: Ledger,
) -> None:
    """Compare the rows of the inputs of a partition with the hashes of what was made.

    Raises:
        DamagedRowsError: they differ.
    """
    found: list[Damage] = []
    for dep in declaration.deps if declaration.hands_rows else ():
        upstream = declarations()[dep]
        if declaration.reads(dep, context):
            keys = upstream_keys(upstream.grain, declaration.grain, key, context.catalog)
            found += damage_of(connection, upstream, keys, ledger)
    if found:
        raise DamagedRowsError(found)


def damage_of(
    connection: duckdb.DuckDBPyConnection,
    declaration: Declaration,
    keys: Iterable[str],
    ledger: Ledger,
) -> list[Damage]:
    """Return those partitions of an asset whose rows are not those that were made.

    Where the ledger has no hash (a partition that an earlier version made) the number counts.
    """
    made = dict(_made(declaration, keys, ledger))
    if not made:
        return []
    facts = hashed_rows(connection, declaration.tables, _frame(declaration, made))
    found = []
    for (key, entry), fact in zip(made.items(), facts, strict=True):
        if fact.n_rows != entry["n_rows"]:
            found.append(Damage(declaration.name, key, _counts(fact.n_rows, entry["n_rows"])))
        elif entry["content"] not in (None, fact.content):
            found.append(Damage(declaration.name, key, "its rows are other ones than were made"))
    return found


def counted_ledger(connection: duckdb.DuckDBPyConnection) -> Ledger:
    """Return the ledger, with the `damage` of partitions that `lost_rows` finds."""
    ledger = read_ledger(connection)
    for declaration in declarations().values():
        for damage in lost_rows(connection, declaration):
            ledger[damage.asset, damage.key]["damage"] = MARK + damage.what
    return ledger


def lost_rows(connection: duckdb.DuckDBPyConnection, declaration: Declaration) -> list[Damage]:
    """Return the partitions of an asset that have fewer or more rows than were made.

    Not of assets with `many_rows`, and not of records, which nothing can make again.
    """
    if not declaration.tables or declaration.many_rows or declaration.keeps_rows:
        return []
    key = key_sql(declaration.grain)
    other = other_counts(connection, declaration.name, declaration.tables, key)
    return [Damage(declaration.name, key, _counts(there, made)) for key, there, made in other]


def mark_damaged(connection: duckdb.DuckDBPyConnection, found: Iterable[Damage]) -> None:
    """Note partitions as failed, so that the next run makes them again.

    Their data versions stay: where the new rows equal the lost ones, nothing below runs again.
    """
    found = list(found)
    ledger = read_ledger(connection, [(d.asset, d.key) for d in found])
    for damage in found:
        entry = ledger[damage.asset, damage.key]
        # Without its settings it counts as changed, so that the daemon makes it again, too.
        changed = {"status": "failed", "reason": MARK + damage.what, "settings_hash": ""}
        write_ledger(connection, damage.asset, damage.key, {**entry, **changed})


def record_contents(
    connection: duckdb.DuckDBPyConnection, declaration: Declaration, keys: Iterable[str]
) -> None:
    """Note in the ledger the hashes of the rows that some partitions have now."""
    made = dict.fromkeys(keys)
    if not made or not declaration.tables:
        return
    facts = hashed_rows(connection, declaration.tables, _frame(declaration, made))
    for key, fact in zip(made, facts, strict=True):
        connection.execute(
            "UPDATE ledger.partitions SET content = ? WHERE asset = ? AND partition_key = ?",
            [fact.content, declaration.name, key],
        )


def _made(
    declaration: Declaration, keys: Iterable[str], ledger: Ledger
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    if not declaration.tables:
        return
    for key in keys:
        entry = ledger.get((declaration.name, key))
        if entry is not None and entry["status"] == "ok":
            yield key, entry


def _frame(declaration: Declaration, keys: Iterable[str]) -> pd.DataFrame:
    return pd.DataFrame([columns_of(declaration.grain, key) for key in keys])


def _counts(there: int, made: int) -> str:
    return f"{there} of {made} rows are there"
