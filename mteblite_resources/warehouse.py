"""The warehouse: one DuckDB file for the writer under a lock, one snapshot for everybody else."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import filelock
import pandas as pd
from tenacity import retry, retry_if_exception, stop_after_delay, wait_random_exponential

SCHEMA = Path(__file__).with_name("warehouse_schema.sql")
LOCK_SECONDS = 600.0
CLIENT_SECONDS = 60.0
CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
SNAPSHOT_STORAGE = "v1.5.0"
"""Storage version that DuckDB's released command line reads; files of 2.x alone it cannot."""


class WarehouseBusyError(RuntimeError):
    """Another process held the writer's lock for too long."""


class Warehouse:
    """Short transactions on the writer's file; readers get a snapshot of whole partitions.

    A reader of the writer's file would block the writer (DuckDB locks the file between
    processes), so nothing but this class opens it, always under the file lock.
    """

    def __init__(self, writer: Path, snapshot: Path) -> None:
        self.writer = writer
        self.snapshot = snapshot
        self._lock = filelock.FileLock(str(writer) + ".lock")

    @contextmanager
    def session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open the writer's file for one short transaction; roll back on any error."""
        with self.locked():
            connection = _connect(self.writer)
            try:
                connection.execute("BEGIN")
                _ensure_schema(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _rollback(connection)
                raise
            finally:
                connection.close()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writer's lock; dbt runs inside it with a connection of its own."""
        self.writer.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._lock.acquire(timeout=LOCK_SECONDS):
                yield
        except filelock.Timeout as error:
            raise WarehouseBusyError(
                f"{self.writer.name}: another mteblite process held the write lock for "
                f"{LOCK_SECONDS:.0f} s; wait for it or stop it"
            ) from error

    def publish(self) -> None:
        """Replace the snapshot atomically by a copy of what is committed now."""
        with self.locked():
            connection = _connect(self.writer)
            try:
                _ensure_schema(connection)
                # Under the lock nobody else is publishing: these are of runs that were killed.
                for left in self.snapshot.parent.glob(f".{self.snapshot.name}.*"):
                    left.unlink(missing_ok=True)
                scratch = self.snapshot.with_name(f".{self.snapshot.name}.{os.getpid()}")
                quoted = str(scratch).replace("'", "''")
                connection.execute(
                    f"ATTACH '{quoted}' AS published (STORAGE_VERSION '{SNAPSHOT_STORAGE}')"
                )
                name = connection.execute("SELECT current_database()").fetchall()[0][0]
                connection.execute(f'COPY FROM DATABASE "{name}" TO published')
                connection.execute("DETACH published")
                scratch.replace(self.snapshot)
            finally:
                connection.close()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
        """Run one read-only statement on the snapshot; one that is missing is published first.

        Raises:
            FileNotFoundError: nothing has been published yet.
            duckdb.Error: the statement is wrong, or would write.
        """
        if not self.snapshot.exists() and self.writer.exists():
            self.publish()
        if not self.snapshot.exists():
            raise FileNotFoundError(
                f"no warehouse at {self.snapshot}: run `mteblite quickstart` or "
                "`mteblite materialize --suite NAME` first"
            )
        # No files but this one: a query can neither write one nor load an extension.
        config = {**CONFIG, "enable_external_access": "false"}
        connection = duckdb.connect(str(self.snapshot), read_only=True, config=config)
        try:
            result = connection.execute(sql, list(parameters))
            if result is None or result.description is None:
                raise ValueError("the query holds no statement")
            return result.df()
        finally:
            connection.close()


def read_partitions(
    connection: duckdb.DuckDBPyConnection, table: str, keys: pd.DataFrame
) -> pd.DataFrame:
    """Return the rows of a table whose key columns match a row of `keys`.

    `table` is a name from this project's own declarations, never from a user.
    """
    connection.register("_wanted", keys)
    columns = ", ".join(f'"{c}"' for c in keys.columns)
    try:
        return connection.execute(
            f"SELECT t.* FROM {table} t SEMI JOIN _wanted USING ({columns})"
        ).df()
    finally:
        connection.unregister("_wanted")


def replace_partition(
    connection: duckdb.DuckDBPyConnection, table: str, key: Mapping[str, str], rows: pd.DataFrame
) -> None:
    """Delete the rows of one partition and insert the new ones, columns matched by name."""
    where = " AND ".join(f'"{c}" = ?' for c in key)
    connection.execute(f"DELETE FROM {table} WHERE {where}", list(key.values()))
    if rows.empty:
        return
    frame = rows.assign(**dict(key))
    connection.register("_rows", frame)
    try:
        connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM _rows")
    finally:
        connection.unregister("_rows")


def read_ledger(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the ledger as (asset, partition_key) -> entry."""
    frame = connection.execute(
        "SELECT asset, partition_key, status, data_version, code_version, settings_hash, inputs, "
        "reason, n_rows, seconds FROM ledger.partitions"
    ).fetchall()
    names = ("status", "data_version", "code_version", "settings_hash", "inputs", "reason",
             "n_rows", "seconds")  # fmt: skip
    entries = {}
    for asset, key, *values in frame:
        entry = dict(zip(names, values, strict=True))
        entry["inputs"] = json.loads(entry["inputs"] or "{}")
        entries[asset, key] = entry
    return entries


def write_ledger(
    connection: duckdb.DuckDBPyConnection, asset: str, key: str, entry: Mapping[str, Any]
) -> None:
    """Insert or replace one ledger entry, in the transaction of its rows."""
    connection.execute(
        "INSERT OR REPLACE INTO ledger.partitions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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


@retry(
    retry=retry_if_exception(
        lambda error: isinstance(error, duckdb.IOException) and "lock" in str(error).lower()
    ),
    wait=wait_random_exponential(multiplier=0.05, max=2),
    stop=stop_after_delay(CLIENT_SECONDS),
    reraise=True,
)
def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    """Open the writer's file; a client that holds it past our lock is waited for."""
    return duckdb.connect(str(path), config=CONFIG)


def _ensure_schema(connection: duckdb.DuckDBPyConnection) -> None:
    """Create what is missing, also in a warehouse that an earlier version made.

    The schema file is safe to run on any earlier state; it is run when it changed since.
    """
    text = SCHEMA.read_text()
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    known = connection.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'ledger' "
        "AND table_name = 'schema_version'"
    ).fetchall()[0][0]
    if known:
        stored = connection.execute("SELECT digest FROM ledger.schema_version").fetchall()
        if stored == [(digest,)]:
            return
    connection.execute(text)
    _fill_type_facts(connection)
    connection.execute("DELETE FROM ledger.schema_version")
    connection.execute("INSERT INTO ledger.schema_version VALUES (?)", [digest])


def _fill_type_facts(connection: duckdb.DuckDBPyConnection) -> None:
    """Give the tasks that an earlier version stored the facts of their type.

    They follow from columns that are there, so nothing needs to run again for them.
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


def _rollback(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.execute("ROLLBACK")
    except duckdb.Error:
        return
