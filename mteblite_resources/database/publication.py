"""The snapshots of the writer's file: written whole, the last two kept, one restored from."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import duckdb

from mteblite_resources.database.duckdb_files import (
    WarehouseDamagedError,
    WarehouseVersionError,
    connect,
    database_state,
    log_of,
    open_snapshot,
)
from mteblite_resources.database.warehouse_schema import own_version, version_of

SNAPSHOT_STORAGE = "v1.5.0"
"""Storage version that DuckDB's command line of version 1.5 and later can read."""


def previous_of(snapshot: Path) -> Path:
    """Return where the snapshot before this one is."""
    return snapshot.with_name(f"{snapshot.stem}.previous{snapshot.suffix}")


def scratch_files(snapshot: Path) -> list[Path]:
    """Return what killed runs left; while the writer's lock is held there is nothing else."""
    return list(snapshot.parent.glob(f".{snapshot.name}.*"))


def write_snapshot(writer: Path, snapshot: Path) -> None:
    """Replace the snapshot by a copy of the committed rows; the caller holds the writer's lock.

    Raises:
        OSError: its disk is full; the snapshot is as it was.
    """
    for left in scratch_files(snapshot):
        left.unlink(missing_ok=True)
    scratch = snapshot.with_name(f".{snapshot.name}.{os.getpid()}")
    try:
        try:
            _copy(writer, scratch)
        except duckdb.Error as error:
            if "No space left" in str(error):
                problem = os.strerror(errno.ENOSPC)
                # Who prints the innermost error is to print this one.
                raise OSError(errno.ENOSPC, problem, str(snapshot)) from None
            raise
        _keep_previous(snapshot)
        # A client that wrote into the old snapshot left this log; DuckDB would refuse the new file
        # beside it.
        log_of(snapshot).unlink(missing_ok=True)
        scratch.replace(snapshot)
    except BaseException:
        for left in (scratch, log_of(scratch)):
            left.unlink(missing_ok=True)
        raise


def is_current(connection: duckdb.DuckDBPyConnection, writer: Path, snapshot: Path) -> bool:
    """Say whether an open snapshot is a copy of the writer's file as it is now.

    Raises:
        WarehouseVersionError: the snapshot was written by a newer mteblite.
    """
    if version_of(connection, snapshot) != own_version() or log_of(snapshot).exists():
        return False
    rows = connection.execute("SELECT writer_state FROM ledger.publication").fetchall()
    return bool(rows == [(database_state(writer),)])


def n_partitions(snapshot: Path) -> int | None:
    """Return how many partitions a snapshot has made of it in its ledger; None if unreadable.

    Raises:
        WarehouseVersionError: it was written by a newer mteblite.
    """
    try:
        with open_snapshot(snapshot) as connection:
            if version_of(connection, snapshot).number == 0:
                return None
            counted = connection.execute("SELECT count(*) FROM ledger.partitions").fetchall()
            return int(counted[0][0])
    except duckdb.Error:
        return None


def restore_writer(writer: Path, snapshot: Path) -> Path:
    """Make the writer's file from the newest whole snapshot, and return that snapshot.

    The caller holds the writer's lock. A damaged writer's file is kept beside it as
    `writer.damaged.duckdb`.

    Raises:
        WarehouseDamagedError: no snapshot can be read.
    """
    places = (snapshot, previous_of(snapshot))
    whole = next((place for place in places if n_partitions(place) is not None), None)
    if whole is None:
        raise WarehouseDamagedError(
            f"nothing to restore from: neither {places[0]} nor {places[1].name} can be read: put "
            "back a copy of one of them; to begin anew, move them away"
        )
    scratch = writer.with_name(f".{writer.name}.{os.getpid()}")
    try:
        shutil.copyfile(whole, scratch)
        if writer.exists() and writer.stat().st_size:
            writer.replace(writer.with_name(f"{writer.stem}.damaged{writer.suffix}"))
        log_of(writer).unlink(missing_ok=True)
        scratch.replace(writer)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    return whole


def _copy(writer: Path, scratch: Path) -> None:
    """Copy the rows and note which state of the writer's file they are."""
    with connect(writer) as connection:
        connection.execute("CHECKPOINT")  # so that closing the file does not change its state
        quoted = str(scratch).replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS published (STORAGE_VERSION '{SNAPSHOT_STORAGE}')")
        name = connection.execute("SELECT current_database()").fetchall()[0][0]
        connection.execute(f'COPY FROM DATABASE "{name}" TO published')
        connection.execute("DELETE FROM published.ledger.publication")
        state = database_state(writer)
        connection.execute("INSERT INTO published.ledger.publication VALUES (?)", [state])
        connection.execute("DETACH published")


def _keep_previous(snapshot: Path) -> None:
    """Keep the present snapshot as the previous one, unless it is damaged or holds nothing."""
    try:
        if not n_partitions(snapshot):
            return
    except WarehouseVersionError:
        return
    scratch = snapshot.with_name(f".{snapshot.name}.previous")
    scratch.unlink(missing_ok=True)
    try:
        os.link(snapshot, scratch)
    except OSError:  # a file system without hard links
        shutil.copyfile(snapshot, scratch)
    scratch.replace(previous_of(snapshot))
