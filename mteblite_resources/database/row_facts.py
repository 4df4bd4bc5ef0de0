"""How many rows partitions have, and a hash of them: what the ledger is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pandas as pd


@dataclass(frozen=True)
class RowFacts:
    """The rows of one partition in all its tables.

    Attributes:
        n_rows: their number.
        content: hash of them, whatever their order.
    """

    n_rows: int = 0
    content: str = ""


def hashed_rows(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[str], keys: pd.DataFrame
) -> list[RowFacts]:
    """Return the facts of partitions, in the order of `keys`.

    A column that is NULL does not count, so that a new column changes no hash.

    Args:
        connection: a session of the warehouse.
        tables: of one asset, from this project's own declarations.
        keys: key columns, one row per partition.
    """
    found: dict[tuple[str, ...], list[int]] = {}
    connection.register("_wanted", keys)
    names = ", ".join(f'"{c}"' for c in keys.columns)
    for table in tables:
        hashes = f"sum(md5_number_lower({_row_text(connection, table)}))"
        rows = connection.execute(
            f"SELECT {names}, count(*), {hashes} FROM {table} SEMI JOIN _wanted USING ({names}) "
            f"GROUP BY {names}"
        ).fetchall()
        for *key, count, content in rows:
            known = found.setdefault(tuple(key), [0, 0])
            known[0] += count
            known[1] += int(content)
    wanted = list(keys.itertuples(index=False, name=None))
    counted = (found.get(key, [0, 0]) for key in wanted)
    return [RowFacts(n, f"{content:x}") for n, content in counted]


def other_counts(
    connection: duckdb.DuckDBPyConnection, asset: str, tables: Sequence[str], key: str
) -> list[tuple[str, int, int]]:
    """Return (key, rows there, rows made) of the partitions where these numbers differ.

    Args:
        connection: a session of the warehouse, or its snapshot.
        asset: its name in the ledger.
        tables: of the asset, from this project's own declarations.
        key: SQL of the partition key, from the same.
    """
    counts = " UNION ALL ".join(
        f"SELECT {key} AS partition_key, count(*) AS n FROM {table} GROUP BY ALL"
        for table in tables
    )
    return connection.execute(
        "SELECT partition_key, coalesce(there.n, 0)::BIGINT AS n, n_rows FROM ledger.partitions "
        f"LEFT JOIN (SELECT partition_key, sum(n) AS n FROM ({counts}) GROUP BY ALL) AS there "
        "USING (partition_key) "
        "WHERE asset = ? AND status = 'ok' AND n_rows <> coalesce(there.n, 0) ORDER BY ALL",
        [asset],
    ).fetchall()


def _row_text(connection: duckdb.DuckDBPyConnection, table: str) -> str:
    """Return SQL of a text that is another one for every other row."""
    schema, name = table.split(".")
    columns = connection.execute(
        "SELECT column_name FROM duckdb_columns() WHERE database_name = current_database() "
        "AND schema_name = ? AND table_name = ? ORDER BY column_name",
        [schema, name],
    ).fetchall()
    parts = [f"coalesce('{c}=' || \"{c}\"::VARCHAR || chr(31), '')" for (c,) in columns]
    return " || ".join([f"'{table}' || chr(31)", *parts])


def table_facts(connection: duckdb.DuckDBPyConnection, database: str) -> dict[str, RowFacts]:
    """Return the facts of every table of an attached database, by name."""
    tables = connection.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() "
        "WHERE database_name = ? AND table_name <> 'publication' ORDER BY 1",
        [database],
    ).fetchall()
    found = {}
    for (table,) in tables:
        text = _row_text(connection, table)
        row = connection.execute(
            f'SELECT count(*), coalesce(sum(md5_number_lower({text})), 0) FROM "{database}".{table}'
        ).fetchall()[0]
        found[table] = RowFacts(row[0], f"{int(row[1]):x}")
    return found
