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
        content: hash of them, whatever their order; "" where it was not asked for.
    """

    n_rows: int = 0
    content: str = ""


def row_facts(
    connection: duckdb.DuckDBPyConnection,
    tables: Sequence[str],
    keys: pd.DataFrame,
    *,
    hashed: bool,
) -> list[RowFacts]:
    """Return the facts of partitions, in the order of `keys`.

    A column that is NULL does not count, so that a new column changes no hash.

    Args:
        connection: a session of the warehouse.
        tables: of one asset, from this project's own declarations.
        keys: key columns, one row per partition.
        hashed: whether to hash the rows; counting is faster.
    """
    found: dict[tuple[str, ...], list[int]] = {}
    connection.register("_wanted", keys)
    names = ", ".join(f'"{c}"' for c in keys.columns)
    for table in tables:
        hashes = f"sum(md5_number_lower({_row_text(connection, table)}))" if hashed else "0"
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
    return [RowFacts(n, f"{content:x}" if hashed else "") for n, content in counted]


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
