"""A vector store of an earlier version is read as if it had been written by this one."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
from support import kept_files

from mteblite.vectors.keys import key_files, read_space
from mteblite.vectors.shards import open_shard
from mteblite_resources.vector_migration import migrate_vectors

ROWS = "SELECT model_fp, prompt_fp, text_hash, shard, row FROM embedding_index"


def test_every_vector_of_the_old_index_is_found_where_its_shard_is_there(tmp_path: Path) -> None:
    root = kept_files.unpack_home(tmp_path) / "vectors"
    with duckdb.connect(str(root / "index.duckdb"), read_only=True) as connection:
        rows = connection.execute(ROWS).df()
    migrate_vectors(root)
    assert not (root / "index.duckdb").exists()
    there = 0
    for (model, prompt), part in rows.groupby(["model_fp", "prompt_fp"]):
        folder = root / str(model) / str(prompt)
        space = read_space(folder, key_files(folder))
        keys = np.array([bytes.fromhex(h) for h in part["text_hash"]], dtype="V16")
        number, row = space.locate(keys)
        here = np.array([(folder / f"{s}.npy").is_file() for s in part["shard"]])
        np.testing.assert_array_equal(number >= 0, here)
        np.testing.assert_array_equal(row[here], part["row"].to_numpy()[here])
        found = [space.shards[n] for n in number[here]]
        assert found == part["shard"][here].tolist()
        there += here.sum()
        for shard in set(found):
            open_shard(folder / f"{shard}.npy")  # compared with its hash
    assert 0 < there < len(rows)


def test_a_migration_that_was_killed_starts_again(tmp_path: Path) -> None:
    root = kept_files.unpack_home(tmp_path) / "vectors"
    index = (root / "index.duckdb").read_bytes()
    migrate_vectors(root)
    written = sorted(p.relative_to(root) for p in root.rglob("*.keys"))
    (root / written[0]).unlink()
    (root / "index.duckdb").write_bytes(index)
    migrate_vectors(root)
    assert sorted(p.relative_to(root) for p in root.rglob("*.keys")) == written
    migrate_vectors(root)  # nothing is left to do
