"""The warehouse: a DuckDB file for the writer under a lock, and a snapshot for readers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from mteblite_resources.database.duckdb_files import (
    WarehouseBusyError,
    WarehouseDamagedError,
    WarehouseLostError,
    connect,
    explained,
    lost,
    open_snapshot,
)
from mteblite_resources.database.ledger import read_ledger
from mteblite_resources.database.publication import (
    is_current,
    n_partitions,
    previous_of,
    restore_writer,
    write_snapshot,
)
from mteblite_resources.database.turns import TurnLock, is_shared, shared
from mteblite_resources.database.warehouse_schema import (
    bring_up,
    keep_copy,
    own_version,
    version_of,
)
from mteblite_resources.home import may_write

LOCK_SECONDS = 600.0
LOG = logging.getLogger("mteblite.progress")


class Warehouse:
    """Short transactions on the writer's file; readers get a snapshot of whole partitions.

    DuckDB locks a file between processes, so a reader of the writer's file would block the writer.
    Only this class opens that file, under the file lock.
    """

    def __init__(self, writer: Path, snapshot: Path) -> None:
        self.writer = writer
        self.snapshot = snapshot
        self._lock = TurnLock(writer.with_name(writer.name + ".lock"))
        self._runs = writer.with_name(writer.name + ".runs")

    @contextmanager
    def session(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open the writer's file for one short transaction; roll back on any error.

        Raises:
            WarehouseLostError: it is gone or empty, and a snapshot of it is there.
            WarehouseVersionError: it was written by a newer mteblite.
        """
        with self.locked():
            connection, behind = self._open_writer()
            with connection:
                try:
                    connection.execute("BEGIN")
                    if behind:
                        bring_up(connection)
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    with suppress(duckdb.Error):
                        connection.execute("ROLLBACK")
                    raise

    def _open_writer(self) -> tuple[duckdb.DuckDBPyConnection, bool]:
        """Open the writer's file; say whether it needs the schema. A copy of one with rows is kept.

        Raises what `session` raises.
        """
        if not self.writer.exists() or not self.writer.stat().st_size:
            self._require_new()
        connection = connect(self.writer)
        try:
            found = version_of(connection, self.writer)
            if found.number == 0:
                self._require_new()
        except BaseException:
            connection.close()
            raise
        if found.number == 0 or found == own_version():
            return connection, found.number == 0
        connection.close()
        keep_copy(self.writer)
        return connect(self.writer), True

    def is_new(self) -> bool:
        """Say whether there is no warehouse yet.

        Raises:
            WarehouseLostError: the writer's file is gone, and a snapshot of it is there.
        """
        if self.writer.exists():
            return False
        self._require_new()
        return True

    def _require_new(self) -> None:
        for snapshot in (self.snapshot, previous_of(self.snapshot)):
            if snapshot.exists():
                raise lost(self.writer, snapshot)

    def ledger(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return the ledger; {} where there is no warehouse.

        Raises what `session` raises.
        """
        if self.is_new():
            return {}
        with self.session() as connection:
            return read_ledger(connection)

    def ledger_keys(self, asset: str) -> set[str]:
        """Return the partitions of an asset that the ledger knows, whatever became of them.

        Raises what `session` raises.
        """
        if self.is_new():
            return set()
        with self.session() as connection:
            sql = "SELECT partition_key FROM ledger.partitions WHERE asset = ?"
            return {key for (key,) in connection.execute(sql, [asset]).fetchall()}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Mark a run that publishes at its end; until then readers take the snapshot as it is."""
        self.writer.parent.mkdir(parents=True, exist_ok=True)
        with shared(self._runs):
            yield

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writer's lock without a connection."""
        self.writer.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(self._lock.held(LOCK_SECONDS))
            except TimeoutError as error:
                raise WarehouseBusyError(str(error)) from error
            yield

    def is_running(self) -> bool:
        """Say whether a run goes on."""
        return is_shared(self._runs)

    def publish(self, *, anew: bool = False) -> None:
        """Replace the snapshot atomically by a copy of the committed rows, where it differs.

        The snapshot before is kept as `mteblite.previous.duckdb`.

        Args:
            anew: also where the snapshot seems to be such a copy (it may have been edited).

        Raises:
            WarehouseBusyError: another process held the writer's file for too long.
            WarehouseDamagedError: the writer's file cannot be read.
            WarehouseLostError: it holds nothing, and a snapshot does.
            WarehouseVersionError: it, or the snapshot, was written by a newer mteblite.
        """
        with self.locked():
            with self.session() as connection:
                made = connection.execute("SELECT count(*) FROM ledger.partitions").fetchall()
            if not anew and self.is_published():
                return
            if not made[0][0] and self.snapshot.exists() and n_partitions(self.snapshot):
                raise lost(self.writer, self.snapshot)
            write_snapshot(self.writer, self.snapshot)

    def restore(self) -> Path:
        """Make the writer's file again from the newest whole snapshot, and return that snapshot.

        Raises:
            ValueError: the writer's file is whole and holds something.
            WarehouseDamagedError: no snapshot can be read.
        """
        with self.locked():
            if self.writer.exists() and n_partitions(self.writer):
                raise ValueError(f"{self.writer} is whole: there is nothing to restore")
            return restore_writer(self.writer, self.snapshot)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
        """Run one read-only statement on the snapshot, published first where it is not current.

        Raises:
            FileNotFoundError: there is no warehouse yet.
            WarehouseBusyError: a client has the snapshot open, and it cannot be published again.
            WarehouseDamagedError: the same of a damaged one.
            WarehouseVersionError: a newer mteblite wrote it.
            duckdb.Error: the statement is wrong, or would write.
        """
        with self.reading() as connection:
            result = connection.execute(sql, list(parameters))
            if result is None or result.description is None:
                raise ValueError("the query holds no statement")
            return result.df()

    def query_writer(self, sql: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
        """Run a query of ours on the writer's file: what runs stored, whoever edits snapshots.

        Raises what `session` raises, and FileNotFoundError where there is no warehouse yet.
        """
        if self.is_new():
            raise self._nothing_yet()
        with self.session() as connection:
            return connection.execute(sql, list(parameters)).df()

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open the snapshot for reading; raises what `query` raises.

        One that is missing, damaged, open for writing elsewhere, or older than the writer's file
        is published first. While a run goes on, an older one is read: the run publishes.
        """
        if not self.snapshot.exists() and self.is_new():
            raise self._nothing_yet()
        connection = self._current_snapshot()
        with connection:
            yield connection

    def _current_snapshot(self) -> duckdb.DuckDBPyConnection:
        mendable = self.writer.exists() and may_write(self.snapshot.parent)
        try:
            if self.is_published() or not mendable or self.is_running():
                connection = open_snapshot(self.snapshot)
                if not self.writer.exists():
                    LOG.warning("warning: %s", lost(self.writer, self.snapshot))
                return connection
        except duckdb.Error as error:
            if not mendable:
                raise explained(self.snapshot, error) from error
        try:
            self.publish()
        except (WarehouseLostError, WarehouseDamagedError, OSError) as problem:
            with suppress(duckdb.Error):
                connection = open_snapshot(self.snapshot)
                LOG.warning("warning: nothing is published, this is the last snapshot: %s", problem)
                return connection
            raise
        return open_snapshot(self.snapshot)

    def is_published(self) -> bool:
        """Say whether the snapshot is a copy of the writer's file as it is now."""
        try:
            with open_snapshot(self.snapshot) as connection:
                return is_current(connection, self.writer, self.snapshot)
        except duckdb.Error:
            return False

    def _nothing_yet(self) -> FileNotFoundError:
        return FileNotFoundError(
            f"no warehouse at {self.snapshot}: run `mteblite quickstart` or "
            "`mteblite materialize --suite NAME` first"
        )


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
