"""The files of the warehouse, opened; what is wrong with one that cannot be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
from tenacity import retry, retry_if_exception, stop_after_delay, wait_random_exponential

CLIENT_SECONDS = 60.0
STORAGE = "v1.5.0"
"""Storage version of new files, which DuckDB's command line of version 1.5 and later can read."""
CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_DISK = ("No space left", "Disk quota", "Read-only file system", "Permission denied")


class WarehouseBusyError(RuntimeError):
    """Another process held a file of the warehouse for too long."""


class WarehouseDamagedError(RuntimeError):
    """A file of the warehouse cannot be read, and nothing can replace it by itself."""


class WarehouseLostError(RuntimeError):
    """The writer's file is gone or holds nothing, while a snapshot of it is there."""


class WarehouseVersionError(RuntimeError):
    """A file of the warehouse was written by a newer version of mteblite."""


def connect(path: Path) -> duckdb.DuckDBPyConnection:
    """Open the writer's file; wait while a client without our lock has it open.

    Raises:
        WarehouseBusyError: it still has it open after CLIENT_SECONDS.
        WarehouseDamagedError: the file is not a DuckDB file, or is cut short.
    """
    try:
        return _connect_in_turn(path)
    except duckdb.Error as error:
        if is_about_disk(error):
            raise
        raise explained(path, error) from error


def is_about_disk(error: Exception) -> bool:
    """Say whether an error of DuckDB is about the disk, not about the content of a file."""
    return any(word in str(error) for word in _DISK)


def _is_locked(error: BaseException) -> bool:
    return isinstance(error, duckdb.IOException) and "set lock" in str(error)


@retry(
    retry=retry_if_exception(_is_locked),
    wait=wait_random_exponential(multiplier=0.05, max=2),
    stop=stop_after_delay(CLIENT_SECONDS),
    reraise=True,
)
def _connect_in_turn(path: Path) -> duckdb.DuckDBPyConnection:
    config = {**CONFIG, "storage_compatibility_version": STORAGE}
    return duckdb.connect(str(path), config=config)


def open_snapshot(path: Path) -> duckdb.DuckDBPyConnection:
    """Open the snapshot for reading."""
    # A query can neither read or write other files nor load an extension.
    config = {**CONFIG, "enable_external_access": "false"}
    return duckdb.connect(str(path), read_only=True, config=config)


def explained(path: Path, error: Exception) -> RuntimeError:
    """Return what is wrong with a file of the warehouse, and how to mend it."""
    if _is_locked(error):
        return WarehouseBusyError(
            f"{path} is open for writing in another program{_process_in(str(error))}: close it "
            "there; open `mteblite.duckdb` read-only (`duckdb -readonly`)"
        )
    first = str(error).strip().splitlines()[0]
    return WarehouseDamagedError(
        f"{path} cannot be read as a DuckDB file ({first}): `mteblite home restore` makes "
        "`writer.duckdb` again from the newest whole snapshot; or put back a copy of the file"
    )


def lost(writer: Path, snapshot: Path) -> WarehouseLostError:
    """Return that nothing may be written or published, and how to get the writer back."""
    return WarehouseLostError(
        f"{writer} is gone or empty, but {snapshot.name} is there: run `mteblite home restore`, "
        "which makes it again from the snapshot; to begin anew, move the snapshots away"
    )


def database_state(path: Path) -> str:
    """Return size and time of a database file and of its log: equal states, equal content."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return ""
    log = log_of(path)
    return f"{stat.st_size}:{stat.st_mtime_ns}:{log.stat().st_size if log.exists() else 0}"


def log_of(path: Path) -> Path:
    """Return where DuckDB keeps what is not in the file yet."""
    return path.with_name(f"{path.name}.wal")


def _process_in(message: str) -> str:
    found = re.search(r"PID (\d+)", message)
    return f" (process {found[1]})" if found else ""
