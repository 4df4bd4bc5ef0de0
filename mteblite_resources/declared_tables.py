"""SQL of one asset on the warehouse, limited to the tables that its declaration names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from mteblite_resources.database.warehouse_schema import SCHEMA
from mteblite_resources.warehouse import Warehouse

_SCHEMAS = re.compile(r"CREATE SCHEMA IF NOT EXISTS (\w+)")
_ALLOWED = {
    duckdb.StatementType.SELECT,
    duckdb.StatementType.INSERT,
    duckdb.StatementType.DELETE,
    duckdb.StatementType.UPDATE,
}


class UndeclaredTableError(RuntimeError):
    """An asset reads or changes a table that its declaration does not name."""


@dataclass(frozen=True)
class DeclaredTables:
    """Transactions on the writer's file, limited to the declared tables of an asset.

    Attributes:
        asset: name of the asset.
        reads: tables that it may query.
        writes: tables that it may query and change.
    """

    asset: str
    reads: Collection[str]
    writes: Collection[str]
    _warehouse: Warehouse

    @contextmanager
    def session(self) -> Iterator[DeclaredConnection]:
        """Open one short transaction; roll back on any error."""
        with self._warehouse.session() as connection:
            yield DeclaredConnection(connection, self)


@dataclass(frozen=True)
class DeclaredConnection:
    """A connection that refuses statements on other tables, and statements that change no rows."""

    _connection: duckdb.DuckDBPyConnection
    _tables: DeclaredTables

    def execute(
        self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> duckdb.DuckDBPyConnection:
        """Run a statement.

        Raises:
            UndeclaredTableError: it names a table that the asset does not declare.
        """
        check_statement(sql, self._tables)
        return self._connection.execute(sql, parameters)

    def arrow(self, sql: str) -> pa.Table:
        """Return the rows of a query as an Arrow table, without a copy; raises like `execute`."""
        check_statement(sql, self._tables)
        return self._connection.sql(sql).to_arrow_table()

    def register(self, name: str, rows: Any) -> None:
        """Give a frame or Arrow table a name in SQL, in the place of an earlier one."""
        self._connection.register(name, rows)


def check_statement(sql: str, tables: DeclaredTables) -> None:
    """Check that SQL uses only the declared tables of an asset, and allowed statements.

    Raises:
        UndeclaredTableError: names the asset, the table and how to declare it.
    """
    refused = {statement.type for statement in duckdb.extract_statements(sql)} - _ALLOWED
    if refused:
        names = ", ".join(sorted(kind.name for kind in refused))
        raise UndeclaredTableError(f"asset {tables.asset} may not run a statement {names}: {sql}")
    changed = named_tables(sql, changed=True)
    for table in sorted(changed - set(tables.writes)):
        raise UndeclaredTableError(
            f"asset {tables.asset} changes {table}, which is not among its `self_written` "
            f"tables {sorted(tables.writes)}: declare it there, or return rows of its `tables`"
        )
    declared = {*tables.reads, *tables.writes}
    for table in sorted(named_tables(sql) - declared):
        raise UndeclaredTableError(
            f"asset {tables.asset} reads {table}, which it does not declare; in SQL it may read "
            f"{sorted(declared)}: name the asset that writes it in `deps`"
        )


def named_tables(sql: str, *, changed: bool = False) -> set[str]:
    """Return the tables (`schema.name`, lower case) that SQL names, or those that it changes."""
    pattern = rf"(?:{_schemas()})\.\w+"
    if changed:
        pattern = rf"(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|DELETE\s+FROM|UPDATE)\s+({pattern})"
    return {name.lower() for name in re.findall(rf"\b{pattern}", sql, re.IGNORECASE)}


@cache
def _schemas() -> str:
    return "|".join(_SCHEMAS.findall(SCHEMA.read_text()))
