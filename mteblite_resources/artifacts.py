"""Pools with their texts, and the arrays that set metrics need, as files beside the warehouse."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pandas as pd
from cachetools import LRUCache

from mteblite.files import DamagedFileError, FileState, file_state, write_whole
from mteblite.pools.pool import Pool

POOLS_KEPT = 12


class Artifacts:
    """Pools and arrays of one home, each named by the hash of its content."""

    def __init__(self, pools: Path, observations: Path) -> None:
        self._pools_folder = pools
        self._observations = observations
        self._pools: LRUCache[Path, Pool] = LRUCache(POOLS_KEPT)
        self._verified: dict[Path, dict[str, FileState]] = {}

    def save_pool(self, pool_task: str, pool: Pool) -> str:
        """Write a pool under its hash and return the hash."""
        pool_hash = pool.pool_hash()
        pool.save(self._pool_folder(pool_task, pool_hash))
        return pool_hash

    def pool(self, stats: pd.DataFrame, pool_task: str) -> Pool:
        """Return the pool of a row of `pools.shared_pool_stats`.

        Files that this process has not seen yet, or that changed, are compared with the hash.

        Raises:
            DamagedFileError: the folder does not hold this pool; `save_pool` mends it.
        """
        folder = self._pool_folder(pool_task, str(stats["pool_hash"].iloc[0]))
        if folder not in self._pools:
            states = {p.name: file_state(p) for p in folder.glob("*")}
            self._pools[folder] = Pool.load(folder, verified=self._verified.get(folder) != states)
            self._verified[folder] = states
        return self._pools[folder]

    def save_array(self, array: np.ndarray) -> str:
        """Store an array as float32 under the hash of its content and return the file's name."""
        buffer = io.BytesIO()
        np.save(buffer, array.astype(np.float32), allow_pickle=False)
        content = buffer.getvalue()
        name = _array_name(content)
        path = self._observations / name
        if not path.exists() or path.read_bytes() != content:
            write_whole(path, lambda stream: stream.write(content))
        return name

    def load_array(self, name: str) -> np.ndarray:
        """Return an array that `save_array` stored.

        Raises:
            DamagedFileError: the file is missing or does not hold it; `save_array` mends it.
        """
        path = self._observations / name
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise DamagedFileError(f"observations file {path} does not exist") from None
        if _array_name(content) != name:
            raise DamagedFileError(f"observations file {path} does not hold what was written")
        return np.asarray(np.load(io.BytesIO(content), allow_pickle=False))

    def _pool_folder(self, pool_task: str, pool_hash: str) -> Path:
        return self._pools_folder / pool_task.replace("/", ".") / pool_hash


def _array_name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32] + ".npy"
