"""What columns a warehouse file has."""

from __future__ import annotations

from pathlib import Path

import duckdb


def columns_of(path: Path) -> set[tuple[str, str, str]]:
    """Return (schema, table, column) of every table of a DuckDB file."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return set(
            connection.execute(
                "SELECT schema_name, table_name, column_name FROM duckdb_columns() "
                "WHERE schema_name NOT IN ('information_schema', 'pg_catalog')"
            ).fetchall()
        )
