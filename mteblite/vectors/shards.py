"""Shards: blocks of vectors as .npy files named by the hash of their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from mteblite.files import FileState, file_state, write_whole

_BLOCK = 16384
"""Rows copied at once: large enough to be fast, small enough not to hold a shard twice."""

_VERIFIED: dict[str, FileState] = {}
"""State of the shards that this process has written, or compared with their hash."""


def write_shard(folder: Path, array: np.ndarray) -> str:
    """Write a shard, complete or not at all, and return its name.

    Args:
        folder: the shards of one model and prompt; made when absent.
        array: (n, dim) float32, C-contiguous.
    """
    name = content_hash(array)
    path = folder / f"{name}.npy"
    write_whole(path, lambda s: np.save(s, array, allow_pickle=False))
    _VERIFIED[str(path)] = file_state(path)
    return name


def open_shard(path: Path) -> np.ndarray:
    """Memory-map a shard, (n, dim) float32.

    The first use in a process, and any use after its size, times or inode changed, reads the
    whole file and compares its hash with its name.

    Raises:
        ValueError: the file is missing, cut short or altered; names the problem.
    """
    try:
        data: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        state = file_state(path)
        if _VERIFIED.get(str(path)) != state:
            if content_hash(data) != path.stem:
                raise ValueError("it does not hold what was written")
            _VERIFIED[str(path)] = state
    # Other system errors (too many open files, no permission) do not mean damaged data.
    except (FileNotFoundError, ValueError, EOFError) as error:
        raise ValueError(f"shard {path} cannot be used: {error}") from error
    if data.ndim != 2 or data.dtype != np.float32:
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
