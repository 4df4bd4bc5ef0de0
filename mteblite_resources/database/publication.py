"""The snapshots of the writer's file: copies of it, the last two kept, one restored from."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np

from mteblite_resources.database.duckdb_files import (
    STORAGE,
    WarehouseDamagedError,
    WarehouseVersionError,
    connect,
    database_state,
    explained,
    is_about_disk,
    log_of,
    open_snapshot,
)
from mteblite_resources.database.warehouse_schema import own_version, version_of

SPARE_BLOCKS = 64
"""Free blocks (16 MiB) that no file is written anew for."""
HEADERS = 3 * 4096
CHECKSUM_START, CHECKSUM_FACTOR = 5381, np.uint64(0xBF58476D1CE4E5B9)
"""DuckDB's file: three headers, then blocks, each with the checksum of its words as the first."""


def previous_of(snapshot: Path) -> Path:
    """Return where the snapshot before this one is."""
    return snapshot.with_name(f"{snapshot.stem}.previous{snapshot.suffix}")


def scratch_files(snapshot: Path) -> list[Path]:
    """Return what killed runs left; while the writer's lock is held there is nothing else."""
    return list(snapshot.parent.glob(f".{snapshot.name}.*"))


def write_snapshot(writer: Path, snapshot: Path) -> None:
    """Replace the snapshot by a copy of the committed rows; the caller holds the writer's lock.

    The bytes of the file are copied, so publishing costs about the same whatever was changed, and
    little. A writer's file that is not as it should be is written anew first.

    Raises:
        OSError: its disk is full; the snapshot is as it was.
        WarehouseDamagedError: rows of the writer's file cannot be read.
    """
    for left in (*scratch_files(snapshot), *scratch_files(writer)):
        left.unlink(missing_ok=True)
    scratch = snapshot.with_name(f".{snapshot.name}.{os.getpid()}")
    try:
        with _full_disk_named(snapshot):
            state = copy_file(writer, scratch)
            if not _is_sound(scratch):
                _write_anew(writer)
                state = copy_file(writer, scratch)
            with connect(scratch) as connection:
                connection.execute("DELETE FROM ledger.publication")
                connection.execute("INSERT INTO ledger.publication VALUES (?)", [state])
        _keep_previous(snapshot)
        # A client that wrote into the old snapshot left this log; DuckDB would refuse the new file
        # beside it.
        log_of(snapshot).unlink(missing_ok=True)
        scratch.replace(snapshot)
    except BaseException:
        for left in (scratch, log_of(scratch)):
            left.unlink(missing_ok=True)
        raise


def copy_file(writer: Path, copy: Path) -> str:
    """Copy the writer's file, and return its state; the caller holds the writer's lock."""
    with connect(writer) as connection:
        connection.execute("CHECKPOINT")  # so that the file has all rows, and closing changes none
        # The open connection keeps clients without our lock from writing meanwhile.
        shutil.copyfile(writer, copy)
        return database_state(writer)


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


def _is_sound(copy: Path) -> bool:
    """Say whether a copy can be published: every row can be read, by those who are to read it.

    DuckDB reads the blocks that a query needs, so a damaged one would go unnoticed. Their checksums
    are compared here, because reading all rows takes ten times as long.
    """
    try:
        with open_snapshot(copy) as connection:
            size = "SELECT total_blocks, free_blocks, block_size FROM pragma_database_size()"
            total, free, block_size = connection.execute(size).fetchall()[0]
            storage = (
                "SELECT tags['storage_version'] FROM duckdb_databases() WHERE path IS NOT NULL"
            )
            if connection.execute(storage).fetchall() != [(f"{STORAGE}+",)]:
                return False
            if free > max(total // 2, SPARE_BLOCKS) or not _blocks_hold(copy, block_size):
                return False
            # Free blocks at the end were perhaps never written; or the file was cut there.
            if copy.stat().st_size < HEADERS + total * block_size:
                _read_all(connection)
            return True
    except duckdb.Error:
        return False


def _blocks_hold(copy: Path, block_size: int) -> bool:
    with copy.open("rb") as stream:
        stream.seek(HEADERS)
        while block := stream.read(block_size):
            if len(block) < block_size:
                return False
            words = np.frombuffer(block, dtype="<u8")
            computed = np.bitwise_xor.reduce(words[1:] * CHECKSUM_FACTOR)
            if int(computed) ^ CHECKSUM_START != int(words[0]):
                return False
    return True


def _read_all(connection: duckdb.DuckDBPyConnection) -> None:
    tables = connection.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
    for schema, table in tables:
        connection.execute(f'SELECT last(COLUMNS(*)) FROM "{schema}"."{table}"').fetchall()


def _write_anew(writer: Path) -> None:
    """Replace the writer's file by one with the same rows, in STORAGE and without free blocks.

    Raises:
        WarehouseDamagedError: some cannot be read; the file is as it was.
    """
    scratch = writer.with_name(f".{writer.name}.{os.getpid()}")
    try:
        with connect(writer) as connection:
            quoted = str(scratch).replace("'", "''")
            connection.execute(f"ATTACH '{quoted}' AS anew (STORAGE_VERSION '{STORAGE}')")
            name = connection.execute("SELECT current_database()").fetchall()[0][0]
            try:
                connection.execute(f'COPY FROM DATABASE "{name}" TO anew')
            except duckdb.Error as error:
                if is_about_disk(error):
                    raise
                raise explained(writer, error) from error
            connection.execute("DETACH anew")
        scratch.replace(writer)
    except BaseException:
        for left in (scratch, log_of(scratch)):
            left.unlink(missing_ok=True)
        raise


@contextmanager
def _full_disk_named(snapshot: Path) -> Iterator[None]:
    """Name the snapshot, not DuckDB's or a scratch file, where the disk is full."""
    try:
        yield
    except (duckdb.Error, OSError) as error:
        if "No space left" not in str(error):
            raise
        # Who prints the innermost error is to print this one.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(snapshot)) from None


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
