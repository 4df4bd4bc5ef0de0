"""Migration of vector stores with an index in DuckDB to stores with a key file for each shard."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
from filelock import FileLock

from mteblite.vectors.keys import KEY, write_keys

_ROWS = """
SELECT model_fp, prompt_fp, shard, text_hash, row FROM embedding_index
ORDER BY model_fp, prompt_fp, shard, row
"""


def migrate_vectors(root: Path) -> None:
    """Write the key files of a store that has an index in DuckDB, then remove the index.

    After an interruption it runs again at the next use. Names of key files are hashes of their
    content, so existing ones are written again unchanged. Missing shards are left out.
    """
    index = root / "index.duckdb"
    if not index.is_file():
        return
    with FileLock(root / "index.lock"):
        if not index.is_file():  # another process has migrated the store
            return
        with duckdb.connect(str(index)) as connection:
            rows = connection.execute(_ROWS).df()
        for place, part in rows.groupby(["model_fp", "prompt_fp", "shard"]):
            model, prompt, shard = map(str, place)
            folder = root / model / prompt
            if (folder / f"{shard}.npy").is_file():
                keys = _keys_by_row(list(part["text_hash"]), part["row"].to_numpy())
                write_keys(folder, shard, keys)
        index.unlink()


def _keys_by_row(hashes: list[str], rows: np.ndarray) -> np.ndarray:
    """Return the keys in the order of the rows; a row without an index entry gets a zero key."""
    keys = np.zeros(int(rows.max()) + 1, dtype=KEY)
    keys[rows] = np.frombuffer(b"".join(bytes.fromhex(h) for h in hashes), dtype=KEY)
    return keys
