"""The warehouse: a DuckDB file for the writer under a lock, and a snapshot for readers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from mteblite_resources.duckdb_files import (
    WarehouseBusyError,
    connect,
    explained,
    open_snapshot,
)
from mteblite_resources.home import may_write
from mteblite_resources.turns import TurnLock

SCHEMA = Path(__file__).with_name("warehouse_schema.sql")
LOCK_SECONDS = 600.0
SNAPSHOT_STORAGE = "v1.5.0"
"""Storage version that DuckDB's command line of version 1.5 and later can read."""


class Warehouse:
    """Short transactions on the writer's file; readers get a snapshot of whole partitions.

    DuckDB locks a file between processes, so a reader of the writer's file would block the writer.
    Only this class opens that file, under the file lock.
    """

    def __init__(self, writer: Path, snapshot: Path) -> None:
        self.writer = writer
        self.snapshot = snapshot
        self._lock = TurnLock(writer.with_name(writer.name + ".lock"))

    @contextmanager
    def session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open the writer's file for one short transaction; roll back on any error."""
        with self.locked(), connect(self.writer) as connection:
            try:
                connection.execute("BEGIN")
                _ensure_schema(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(duckdb.Error):
                    connection.execute("ROLLBACK")
                raise

    def ledger(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the ledger as (asset, partition_key) -> entry; {} where there is no warehouse."""
        if not self.writer.exists():
            return {}
        with self.session() as connection:
            return read_ledger(connection)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writer's lock without a connection, for dbt's own connection."""
        self.writer.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(self._lock.held(LOCK_SECONDS))
            except TimeoutError as error:
                raise WarehouseBusyError(
                    f"{self.writer.name}: other mteblite processes held the write lock for "
                    f"{LOCK_SECONDS:.0f} s; wait for them or stop them"
                ) from error
            yield

    def publish(self) -> None:
        """Replace the snapshot atomically by a copy of the committed rows.

        Raises:
            WarehouseBusyError: another process held the writer's file for too long.
            WarehouseDamagedError: the writer's file cannot be read.
        """
        with self.locked(), connect(self.writer) as connection:
            _ensure_schema(connection)
            # Only one process has the lock, so these files are of killed runs.
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
            # A client that wrote into the old snapshot left this log; DuckDB would refuse the
            # new file beside it.
            self.snapshot.with_name(f"{self.snapshot.name}.wal").unlink(missing_ok=True)
            scratch.replace(self.snapshot)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
        """Run one read-only statement on the snapshot; publish it first where it is missing.

        A snapshot that is damaged, or that a client has open for writing, is published again.

        Raises:
            FileNotFoundError: there is no warehouse yet.
            WarehouseBusyError: a client has the snapshot open, and it cannot be published again.
            WarehouseDamagedError: the same of a damaged one.
            duckdb.Error: the statement is wrong, or would write.
        """
        with self.reading() as connection:
            result = connection.execute(sql, list(parameters))
            if result is None or result.description is None:
                raise ValueError("the query holds no statement")
            return result.df()

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open the snapshot for reading; raises what `query` raises."""
        if not self.snapshot.exists() and self.writer.exists():
            self.publish()
        if not self.snapshot.exists():
            raise FileNotFoundError(
                f"no warehouse at {self.snapshot}: run `mteblite quickstart` or "
                "`mteblite materialize --suite NAME` first"
            )
        try:
            connection = open_snapshot(self.snapshot)
        except duckdb.IOException as error:
            connection = self._published_again(error)
        with connection:
            yield connection

    def _published_again(self, problem: duckdb.IOException) -> duckdb.DuckDBPyConnection:
        """Return a new snapshot in the place of one that cannot be opened."""
        if not self.writer.exists() or not may_write(self.snapshot.parent):
            raise explained(self.snapshot, problem) from problem
        self.publish()
        return open_snapshot(self.snapshot)


def read_partitions(
    connection: duckdb.DuckDBPyConnection, table: str, keys: pd.DataFrame
) -> pd.DataFrame:
    """Return the rows of a table whose key columns match a row of `keys`.

    `table` is a name from this project's own declarations, never from a user.
    """
    connection.register("_wanted", keys)
    columns = ", ".join(f'"{c}"' for c in keys.columns)
    sql = f"SELECT t.* FROM {table} t SEMI JOIN _wanted USING ({columns})"
    return connection.execute(sql).df()


def replace_partition(
    connection: duckdb.DuckDBPyConnection, table: str, key: Mapping[str, str], rows: pd.DataFrame
) -> None:
    """Delete the rows of one partition and insert the new ones, columns matched by name."""
    where = " AND ".join(f'"{c}" = ?' for c in key)
    connection.execute(f"DELETE FROM {table} WHERE {where}", list(key.values()))
    if rows.empty:
        return
    connection.register("_rows", rows.assign(**dict(key)))
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM _rows")


def read_ledger(
    connection: duckdb.DuckDBPyConnection, wanted: Iterable[tuple[str, str]] | None = None
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the ledger as (asset, partition_key) -> entry; only the wanted ones where given."""
    sql = (
        "SELECT asset, partition_key, status, data_version, code_version, settings_hash, inputs, "
        "reason, n_rows, seconds, run_id FROM ledger.partitions"
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


def _ensure_schema(connection: duckdb.DuckDBPyConnection) -> None:
    """Create missing tables and columns, also in a warehouse of an earlier version.

    The schema file can run on any earlier state. It runs only when its content has changed.
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
