"""A pool's files are those that were written, or they are refused and made again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from support.pool_tasks import CAPS, TYPES, task

from mteblite.files import DamagedFileError
from mteblite.pools.pool import Pool
from mteblite.task_types.drawing import draw_pool

Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def pool() -> Pool:
    return draw_pool(task("Retrieval"), CAPS)


def _shuffle(name: str) -> Damage:
    def change(folder: Path) -> None:
        frame = pd.read_parquet(folder / name)
        mixed = frame.sample(frac=1, random_state=1).reset_index(drop=True)
        mixed.to_parquet(folder / name, index=False)

    return change


def _meta(folder: Path) -> None:
    value = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**value, "main_metric": "mrr_at_10"}))


def _garbage(folder: Path) -> None:
    (folder / "items.parquet").write_bytes(b"PAR1 no table PAR1")


def _cut(folder: Path) -> None:
    whole = (folder / "texts.parquet").read_bytes()
    (folder / "texts.parquet").write_bytes(whole[: len(whole) // 2])


def _more(folder: Path) -> None:
    shutil.copy(folder / "items.parquet", folder / "frame-more.parquet")


DAMAGES: dict[str, Damage] = {
    "texts shuffled": _shuffle("texts.parquet"),
    "items shuffled": _shuffle("items.parquet"),
    "a frame shuffled": _shuffle("frame-qrels.parquet"),
    "meta": _meta,
    "meta gone": lambda folder: (folder / "meta.json").unlink(),
    "no JSON": lambda folder: (folder / "meta.json").write_text("{"),
    "texts gone": lambda folder: (folder / "texts.parquet").unlink(),
    "frame gone": lambda folder: (folder / "frame-qrels.parquet").unlink(),
    "one frame more": _more,
    "garbage": _garbage,
    "cut": _cut,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_changed_file_is_refused_and_written_again(
    pool: Pool, tmp_path: Path, damage: Damage
) -> None:
    folder = tmp_path / "Task" / pool.pool_hash()
    pool.save(folder)
    damage(folder)
    with pytest.raises(DamagedFileError, match=f"pool .*{folder.name} cannot be used: "):
        Pool.load(folder, verified=True)
    pool.save(folder)
    assert Pool.load(folder, verified=True).pool_hash() == folder.name
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


def test_a_pool_that_is_there_is_not_written_again(pool: Pool, tmp_path: Path) -> None:
    folder = tmp_path / pool.pool_hash()
    pool.save(folder)
    before = {p: p.stat().st_ino for p in folder.iterdir()}
    pool.save(folder)
    assert {p: p.stat().st_ino for p in folder.iterdir()} == before


def test_files_that_may_not_be_read_are_not_damaged(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / pool.pool_hash()
    pool.save(folder)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pd, "read_parquet", refuse)
    with pytest.raises(PermissionError):
        pool.save(folder)
    assert (folder / "meta.json").is_file()


@pytest.mark.parametrize("kind", TYPES)
def test_a_pool_of_every_type_has_its_hash_again_after_reading(kind: str, tmp_path: Path) -> None:
    drawn = draw_pool(task(kind), CAPS)
    folder = tmp_path / drawn.pool_hash()
    drawn.save(folder)
    Pool.load(folder, verified=True)
