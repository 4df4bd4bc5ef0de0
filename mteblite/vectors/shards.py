"""Shards: blocks of vectors as .npy files named by the hash of their content."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

# Rows copied at once: large enough to be fast, small enough not to hold a shard twice.
_BLOCK = 16384


class Shard(NamedTuple):
    """A shard as the index knows it: name, width, and the file's size and time when written."""

    name: str
    dim: int
    n_bytes: int
    mtime_ns: int


def write_shard(folder: Path, array: np.ndarray) -> Shard:
    """Write a shard so that its name only ever stands for the whole file.

    Args:
        folder: where shards of one model and prompt lie; made when absent.
        array: (n, dim) float32, C-contiguous.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = content_hash(array)
    path, scratch = folder / f"{name}.npy", folder / f".{name}.{os.getpid()}.{time.time_ns()}"
    try:
        with scratch.open("wb") as stream:
            np.save(stream, array, allow_pickle=False)
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    stat = path.stat()
    return Shard(name, array.shape[1], stat.st_size, stat.st_mtime_ns)


def open_shard(path: Path, shard: Shard) -> np.ndarray:
    """Memory-map a shard, after making sure that it holds what was written.

    A file with the size and time of its writing is taken as it is; any other (a store that was
    copied, a file that something touched) is read whole and compared with its hash.

    Raises:
        ValueError: the file is missing, cut short or altered; says how.
    """
    try:
        stat = path.stat()
        touched = (stat.st_size, stat.st_mtime_ns) != (shard.n_bytes, shard.mtime_ns)
        if touched and content_hash(np.load(path, allow_pickle=False)) != shard.name:
            raise ValueError("it does not hold what was written")
        data = np.load(path, mmap_mode="r", allow_pickle=False)
    # Other errors of the system (too many open files, no permission) say nothing of the data.
    except (FileNotFoundError, ValueError, EOFError) as error:
        raise ValueError(f"shard {path} cannot be used: {error}") from error
    if data.ndim != 2 or data.shape[1] != shard.dim or data.dtype != np.float32:
        raise ValueError(f"shard {path} has shape {data.shape} and type {data.dtype}")
    return data


def gather(data: np.ndarray, rows: np.ndarray, out: np.ndarray, positions: np.ndarray) -> None:
    """Copy `data[rows]` to `out[positions]`, forward through the file and block by block."""
    order = np.argsort(rows, kind="stable")
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        out[positions[block]] = data[rows[block]]


def content_hash(array: np.ndarray) -> str:
    """Return 32 hex digits over shape, type and values."""
    digest = hashlib.sha256(f"{array.shape} {array.dtype.str} ".encode())
    if array.size:
        digest.update(np.ascontiguousarray(array).data.cast("B"))
    return digest.hexdigest()[:32]
