"""Files: hashes, complete writes, and JSON caches."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

FileState = tuple[int, int, int, int]
"""Size, times (ns) and inode of a file."""


CHECKSUM = "checksum"
"""Key of a JSON file for the hash of all its other keys."""


class DamagedFileError(ValueError):
    """A file or folder does not hold what was written there; the message names it."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, 64 hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_state(path: Path) -> FileState:
    """Return size, times (ns) and inode; ctime changes even where a copy preserves mtime."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; {} where the file is absent or damaged."""
    try:
        return checked_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return {}


def checked_json(text: str) -> dict[str, Any]:
    """Return the JSON object of a text; files of earlier versions have no checksum.

    Raises:
        ValueError: it is no JSON object, or not the one that `write_json` wrote.
    """
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"it holds a {type(value).__name__}, not a JSON object")
    checksum = value.pop(CHECKSUM, None)
    if checksum not in (None, _checksum(value)):
        raise ValueError("it does not hold what was written")
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object with its checksum, complete or not at all."""
    sealed = {**value, CHECKSUM: _checksum(value)}
    content = json.dumps(sealed, indent=1, sort_keys=True).encode()
    write_whole(path, lambda stream: stream.write(content))


def write_whole(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file, complete or not at all, and flush it to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.stem}.{os.getpid()}.{time.time_ns()}")
    try:
        with scratch.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def _checksum(value: dict[str, Any]) -> str:
    # As read: keys are texts, and tuples are lists.
    plain = json.dumps(json.loads(json.dumps(value)), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:32]
