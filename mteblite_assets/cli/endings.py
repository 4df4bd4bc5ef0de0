"""What ended a command: one sentence for the terminal, and the exit code."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from mteblite.own_errors import INTERRUPTED, OURS, raised_by_us
from mteblite_assets.cli.session import NEEDS_PLATFORM, PLATFORM
from mteblite_resources.home import Home

STOPPED = "stopped; what was finished is stored, the next run continues"
STORED = "; what was finished is stored"
FULL = (errno.ENOSPC, errno.EDQUOT)
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
DAMAGED = ("not a database", "malformed")
"""Words of SQLite on a file that is damaged."""
STOPS = ("KeyboardInterrupt", "Abort", "DagsterExecutionInterruptedError")
"""Compared by name, because an import of Dagster's classes is slow."""


def ending_of(error: BaseException) -> tuple[str, int] | None:
    """Return the message and the exit code of an error that is no bug; None for a bug."""
    chain = list(_causes(error))
    if any(type(e).__name__ in STOPS or str(e) == INTERRUPTED for e in chain):
        return STOPPED, 130
    for cause in chain:
        found = _explained(cause)
        if found is not None:
            return f"error: {found[0]}", found[1]
    return None


def _explained(error: BaseException) -> tuple[str, int] | None:
    if isinstance(error, ModuleNotFoundError):
        return _missing_package(error)
    if isinstance(error, ValueError):
        return str(error), 2
    if isinstance(error, OSError):
        return _os_error(error)
    module = type(error).__module__.split(".")[0]
    if module in ("duckdb", "_duckdb", "sqlalchemy", "sqlite3"):
        return _database_error(error, module), 1
    if isinstance(error, RuntimeError) and raised_by_us(error):
        return str(error), 1
    return None


def _missing_package(error: ModuleNotFoundError) -> tuple[str, int] | None:
    name = (error.name or "").split(".")[0]
    if name in OURS or not name:
        return None
    if name in PLATFORM:
        return NEEDS_PLATFORM, 2
    return f"the package {name!r} is not installed: pip install 'mteblite[platform,sample]'", 2


def _os_error(error: OSError) -> tuple[str, int]:
    # An error of writing names no file; then it is most likely one of the home.
    place = error.filename2 or error.filename or Home.from_environment().root
    if error.errno in FULL:
        return f"{place}: {error.strerror}: free space on its disk{STORED}", 1
    if error.errno in REFUSED:
        return f"{place}: {error.strerror}: name a place that you may use, or change its rights", 2
    return f"{error}{STORED}", 1


def _database_error(error: BaseException, module: str) -> str:
    """Name the database, with the first line of what it said."""
    said = str(getattr(error, "orig", None) or error).strip().splitlines()
    home = Home.from_environment()
    what = f"the warehouse in {home.root}"
    if "duckdb" not in module:
        damaged = any(word in str(error) for word in DAMAGED)
        why = (
            "damaged: stop `mteblite dev`, then run `mteblite home check --repair`, which begins "
            "new ones and loses no score"
        )
        why = why if damaged else "is its disk full or read-only?"
        what = f"Dagster's records in {home.dagster} ({why})"
    return f"{what}: {said[0] if said else type(error).__name__}{STORED}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__
