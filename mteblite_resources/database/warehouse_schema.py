"""The schema of the warehouse: which version a file has, and how it is brought up to this one."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb

from mteblite_resources.database.duckdb_files import WarehouseVersionError

SCHEMA = Path(__file__).with_name("warehouse_schema.sql")
NUMBER = 3
"""Raise it with every change of the schema file: a higher number is that of a newer mteblite.

1 is every file from before there were numbers.
"""


@dataclass(frozen=True)
class Version:
    """The schema of a file; number 0 for a file without a ledger."""

    number: int
    digest: str = ""


@cache
def own_version() -> Version:
    """Return the version of this mteblite."""
    return Version(NUMBER, hashlib.sha256(SCHEMA.read_bytes()).hexdigest()[:16])


def version_of(connection: duckdb.DuckDBPyConnection, path: Path) -> Version:
    """Return the version of an open file.

    Raises:
        WarehouseVersionError: it is newer than this mteblite.
    """
    named = {
        row[0]: bool(row[1])
        for row in connection.execute(
            "SELECT table_name, bool_or(column_name = 'number') FROM duckdb_columns() "
            "WHERE schema_name = 'ledger' AND database_name = current_database() "
            "GROUP BY table_name"
        ).fetchall()
    }
    if "partitions" not in named:
        return Version(0)
    if "schema_version" not in named:
        return Version(1)
    number = "number" if named["schema_version"] else "1"
    rows = connection.execute(f"SELECT {number}, digest FROM ledger.schema_version").fetchall()
    found = max((Version(n or 1, digest) for n, digest in rows), key=lambda v: v.number,
                default=Version(1))  # fmt: skip
    if found.number > NUMBER:
        raise WarehouseVersionError(
            f"{path} was written by a newer mteblite (its schema is number {found.number}, this "
            f"version knows up to {NUMBER}), so nothing in it is touched: install that version, or "
            "let MTEBLITE_HOME name another home"
        )
    return found


def keep_copy(path: Path) -> None:
    """Copy a file that is about to be brought up to this version; copies of before are removed."""
    copy = path.with_name(f"{path.stem}.before-{own_version().digest}{path.suffix}")
    scratch = copy.with_name(f".{copy.name}")
    try:
        shutil.copy2(path, scratch)
        scratch.replace(copy)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    for earlier in path.parent.glob(f"{path.stem}.before-*{path.suffix}"):
        if earlier != copy:
            earlier.unlink(missing_ok=True)


def bring_up(connection: duckdb.DuckDBPyConnection) -> None:
    """Create missing tables and columns, in the transaction of the caller.

    The schema file can run on any earlier state. Hashes of rows are forgotten, because a migration
    may change rows.
    """
    connection.execute(SCHEMA.read_text())
    _fill_type_facts(connection)
    connection.execute("UPDATE ledger.partitions SET content = NULL")
    connection.execute("DELETE FROM ledger.schema_version")
    version = own_version()
    connection.execute(
        "INSERT INTO ledger.schema_version (digest, number) VALUES (?, ?)",
        [version.digest, version.number],
    )


def _fill_type_facts(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the facts of the type of tasks that an earlier version stored.

    They follow from stored columns, so no asset needs to run again.
    """
    from mteblite.task_types.registry import TYPE_FACTS, type_facts

    tasks = connection.execute(
        "SELECT DISTINCT task_type, main_metric FROM suites.suite_tasks WHERE lowest_score IS NULL"
    ).fetchall()
    for task_type, metric in tasks:
        facts = type_facts(task_type, metric)
        connection.execute(
            "UPDATE suites.suite_tasks SET lowest_score = ?, lowest_outcome = ?, "
            "mean_is_score = ? WHERE task_type = ? AND main_metric = ?",
            [*(facts[name] for name in TYPE_FACTS), task_type, metric],
        )
