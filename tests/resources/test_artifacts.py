"""Pools and arrays of a home are compared with the hashes that name them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.pool_tasks import CAPS, task

from mteblite.files import DamagedFileError
from mteblite.pools.pool import Pool
from mteblite.task_types.drawing import draw_pool
from mteblite_resources.artifacts import Artifacts


def artifacts(root: Path) -> Artifacts:
    return Artifacts(root / "pools", root / "observations")


@pytest.mark.parametrize("damage", ["rows", "bits", "cut", "garbage", "gone"])
def test_a_changed_array_is_refused_and_written_again(tmp_path: Path, damage: str) -> None:
    array = np.random.default_rng(0).random((9, 3)).astype(np.float32)
    name = artifacts(tmp_path).save_array(array)
    path = tmp_path / "observations" / name
    whole, times = path.read_bytes(), path.stat()
    if damage == "rows":
        np.save(path, array[::-1])
    elif damage == "gone":
        path.unlink()
    else:
        bits = whole[:-1] + bytes([whole[-1] ^ 1])
        path.write_bytes({"bits": bits, "cut": whole[:-40], "garbage": b"none"}[damage])
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(DamagedFileError, match=f"observations file .*{name} does not"):
        artifacts(tmp_path).load_array(name)
    assert artifacts(tmp_path).save_array(array) == name
    np.testing.assert_array_equal(artifacts(tmp_path).load_array(name), array)


def test_a_pool_is_hashed_once_and_again_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mteblite_resources.artifacts.POOLS_KEPT", 1)
    pools = [draw_pool(task(kind), CAPS) for kind in ("STS", "Classification")]
    ours = artifacts(tmp_path)
    stats = [pd.DataFrame([{"pool_hash": ours.save_pool("T", pool)}]) for pool in pools]
    hashed: list[str] = []
    pool_hash = Pool.pool_hash
    monkeypatch.setattr(Pool, "pool_hash", lambda self: hashed.append("") or pool_hash(self))
    for _ in range(2):
        for row in stats:
            ours.pool(row, "T")
    assert len(hashed) == 2
    texts = tmp_path / "pools" / "T" / stats[0]["pool_hash"][0] / "texts.parquet"
    times = texts.stat()
    time.sleep(0.05)  # longer than a tick of the file system's clock
    pd.read_parquet(texts)[::-1].to_parquet(texts, index=False)
    os.utime(texts, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(DamagedFileError):
        ours.pool(stats[0], "T")
