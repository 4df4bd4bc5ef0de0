"""The ledger: of each partition what it was made of, or why it failed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb
import pandas as pd


def read_ledger(
    connection: duckdb.DuckDBPyConnection, wanted: Iterable[tuple[str, str]] | None = None
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the ledger as (asset, partition_key) -> entry; only the wanted ones where given."""
    sql = (
        "SELECT asset, partition_key, status, data_version, code_version, settings_hash, inputs, "
        "reason, n_rows, seconds, run_id, content FROM ledger.partitions"
    )
    if wanted is not None:
        keys = pd.DataFrame(wanted, columns=["asset", "partition_key"], dtype="str")
        connection.register("_wanted", keys)
        sql += " SEMI JOIN _wanted USING (asset, partition_key)"
    rows = connection.execute(sql)
    names = [column[0] for column in rows.description[2:]]
    entries = {}
    for asset, key, *values in rows.fetchall():
        entry = dict(zip(names, values, strict=True))
        entries[asset, key] = entry | {"inputs": json.loads(entry["inputs"] or "{}")}
    return entries


def write_ledger(
    connection: duckdb.DuckDBPyConnection, asset: str, key: str, entry: Mapping[str, Any]
) -> None:
    """Insert or replace one ledger entry, in the transaction of its rows."""
    connection.execute(
        "INSERT OR REPLACE INTO ledger.partitions VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
        [
            asset, key, entry["status"], entry.get("data_version"), entry["code_version"],
            entry["settings_hash"], json.dumps(entry["inputs"], sort_keys=True),
            entry.get("reason"), entry.get("n_rows", 0), entry.get("seconds", 0.0),
            entry.get("run_id", ""), datetime.now(UTC).replace(tzinfo=None),
        ],
    )  # fmt: skip


def delete_ledger(connection: duckdb.DuckDBPyConnection, asset: str, key: str) -> None:
    """Delete one ledger entry, in the transaction that deletes its rows."""
    connection.execute(
        "DELETE FROM ledger.partitions WHERE asset = ? AND partition_key = ?", [asset, key]
    )
