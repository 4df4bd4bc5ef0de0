"""Tables and views that another tool made in a copy of the warehouse, taken into the warehouse."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import duckdb


def take_relations(
    connection: duckdb.DuckDBPyConnection, copy: Path, schemas: Collection[str]
) -> None:
    """Replace tables and views by those of a copy, in the transaction of the caller.

    Args:
        connection: a session of the warehouse.
        copy: a database file that nobody has open.
        schemas: of the tables and views, from this project's own dbt models.
    """
    quoted = str(copy).replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS built (READ_ONLY)")
    for schema in sorted(schemas):
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    of_schemas = "database_name = 'built' AND NOT internal AND list_contains(?, schema_name)"
    tables = f"SELECT schema_name, table_name FROM duckdb_tables() WHERE {of_schemas}"
    for schema, name in connection.execute(tables, [list(schemas)]).fetchall():
        connection.execute(
            f'CREATE OR REPLACE TABLE "{schema}"."{name}" AS FROM built."{schema}"."{name}"'
        )
    # A view is made after those that it reads.
    views = f"SELECT sql FROM duckdb_views() WHERE {of_schemas} ORDER BY view_oid"
    for (sql,) in connection.execute(views, [list(schemas)]).fetchall():
        connection.execute(sql.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1))
