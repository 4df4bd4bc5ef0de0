"""The snapshot as a copy of the writer's file: equal to a copy of its rows, never of damage."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from mteblite_resources.database.duckdb_files import STORAGE, WarehouseDamagedError, log_of
from mteblite_resources.database.ledger import delete_ledger, write_ledger
from mteblite_resources.database.publication import HEADERS
from mteblite_resources.warehouse import Warehouse, replace_partition

ENTRY = {"status": "ok", "code_version": "1", "settings_hash": "s", "inputs": {}}
TABLES = ("outcomes.shared_item_outcomes", "outcomes.outcome_matrix")
BLOCK = 262144
VIEW = "SELECT * FROM staging.stg_scores"


def make(folder: Path) -> Warehouse:
    return Warehouse(folder / "writer.duckdb", folder / "mteblite.duckdb")


def store(warehouse: Warehouse, task: str, model: str, n_items: int, seed: int) -> None:
    """Store a partition as the driver does: its rows in two tables, and its ledger entry."""
    outcomes = np.random.default_rng(seed).random(n_items)
    rows = (
        pd.DataFrame({"item_id": [f"i{n}" for n in range(n_items)], "outcome": outcomes}),
        pd.DataFrame({"pool_score": [outcomes.mean()], "outcomes": [outcomes.tolist()]}),
    )
    with warehouse.session() as connection:
        for table, frame in zip(TABLES, rows, strict=True):
            replace_partition(connection, table, {"pool_task": task, "model": model}, frame)
        write_ledger(connection, "item_outcomes", f"{task}/{model}", ENTRY | {"n_rows": n_items})


def forget(warehouse: Warehouse, task: str, model: str) -> None:
    with warehouse.session() as connection:
        for table in TABLES:
            replace_partition(
                connection, table, {"pool_task": task, "model": model}, pd.DataFrame()
            )
        delete_ledger(connection, "item_outcomes", f"{task}/{model}")


def build_marts(warehouse: Warehouse, factor: float) -> None:
    with warehouse.session() as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS staging")
        connection.execute(
            "CREATE OR REPLACE VIEW staging.stg_scores AS "
            f"SELECT model, {factor} * pool_score AS score FROM outcomes.outcome_matrix"
        )
        connection.execute(f"CREATE OR REPLACE TABLE main.lite_leaderboard AS {VIEW}")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    found = make(tmp_path)
    for number in range(6):
        store(found, "T", f"m{number}", 5000, number)
    build_marts(found, 1.0)
    found.publish()
    return found


def tables_of(path: Path) -> list[str]:
    with duckdb.connect(str(path), read_only=True) as connection:
        sql = "SELECT schema_name || '.' || table_name FROM duckdb_tables() ORDER BY 1"
        return [name for (name,) in connection.execute(sql).fetchall()]


def whole_copy(writer: Path, target: Path) -> None:
    """Copy row by row, which is what the snapshot has to equal."""
    with duckdb.connect(str(writer)) as connection:
        connection.execute(f"ATTACH '{target}' AS whole")
        connection.execute("COPY FROM DATABASE writer TO whole")


def assert_equals_whole_copy(warehouse: Warehouse, folder: Path) -> None:
    whole = folder / "whole.duckdb"
    whole.unlink(missing_ok=True)
    before = warehouse.writer.stat().st_mtime_ns
    whole_copy(warehouse.writer, whole)
    assert warehouse.writer.stat().st_mtime_ns == before
    assert tables_of(whole) == tables_of(warehouse.snapshot)
    with duckdb.connect(str(warehouse.snapshot), read_only=True) as connection:
        connection.execute(f"ATTACH '{whole}' AS whole (READ_ONLY)")
        for table in set(tables_of(whole)) - {"ledger.publication"}:
            for first, second in ((table, f"whole.{table}"), (f"whole.{table}", table)):
                sql = f"SELECT count(*) FROM (FROM {first} EXCEPT ALL FROM {second})"
                assert connection.execute(sql).fetchall() == [(0,)], table
        score = connection.execute(f"SELECT sum(score) FROM ({VIEW})").fetchall()
        connection.execute("USE whole")
        assert connection.execute(f"SELECT sum(score) FROM ({VIEW})").fetchall() == score
        assert score[0][0]


def test_a_snapshot_equals_a_whole_copy_after_every_kind_of_change(warehouse, tmp_path):
    file = warehouse.writer.stat().st_ino
    changes = (
        lambda: store(warehouse, "T", "new", 3000, 1),  # a new partition
        lambda: store(warehouse, "T", "m1", 4000, 99),  # one that is forced, with other rows
        lambda: forget(warehouse, "T", "m2"),
        lambda: build_marts(warehouse, 0.5),
    )
    for change in changes:
        assert warehouse.is_published()
        change()
        assert not warehouse.is_published()
        warehouse.publish()
        assert_equals_whole_copy(warehouse, tmp_path)
    assert warehouse.writer.stat().st_ino == file, "the quick way was not taken"


def test_many_changes_stay_quick_and_the_files_do_not_grow_without_bound(warehouse, tmp_path):
    draw = random.Random(0)
    file = warehouse.writer.stat().st_ino
    for number in range(12):
        store(warehouse, "T", f"m{draw.randrange(6)}", 5000, number)
        warehouse.publish()
    assert_equals_whole_copy(warehouse, tmp_path)
    assert warehouse.writer.stat().st_ino == file, "the quick way was not taken"
    whole = (tmp_path / "whole.duckdb").stat().st_size
    assert warehouse.snapshot.stat().st_size <= 3 * whole + 10 * BLOCK


def test_a_file_of_free_blocks_is_written_anew(warehouse, tmp_path):
    store(warehouse, "T", "huge", 1_500_000, 0)
    warehouse.publish()
    large = warehouse.snapshot.stat().st_size
    forget(warehouse, "T", "huge")
    file = warehouse.writer.stat().st_ino
    warehouse.publish()
    assert warehouse.writer.stat().st_ino != file
    assert warehouse.writer.stat().st_size < large / 2
    assert warehouse.snapshot.stat().st_size < large / 2
    assert_equals_whole_copy(warehouse, tmp_path)
    store(warehouse, "T", "m1", 10, 5)  # its keys are still unique
    assert ("item_outcomes", "T/m1") in warehouse.ledger()


def test_a_writer_of_another_storage_version_is_written_anew_once(warehouse, tmp_path):
    newer = tmp_path / "newer.duckdb"
    with duckdb.connect(str(warehouse.writer)) as connection:
        connection.execute(f"ATTACH '{newer}' AS newer (STORAGE_VERSION 'v2.0.0')")
        connection.execute("COPY FROM DATABASE writer TO newer")
    newer.replace(warehouse.writer)
    warehouse.publish()
    file = warehouse.writer.stat().st_ino
    store(warehouse, "T", "m1", 10, 5)
    warehouse.publish()
    assert warehouse.writer.stat().st_ino == file
    with duckdb.connect(str(warehouse.snapshot), read_only=True) as connection:
        sql = "SELECT tags['storage_version'] FROM duckdb_databases() WHERE path IS NOT NULL"
        assert connection.execute(sql).fetchall() == [(f"{STORAGE}+",)]
    assert_equals_whole_copy(warehouse, tmp_path)


def _used_blocks(path: Path) -> list[int]:
    with duckdb.connect(str(path), read_only=True) as connection:
        sql = f"SELECT DISTINCT block_id FROM pragma_storage_info('{TABLES[0]}') WHERE persistent"
        return sorted(block for (block,) in connection.execute(sql).fetchall() if block >= 0)


def _flip_a_byte(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.seek(HEADERS + _used_blocks(path)[0] * BLOCK + 1000)
        byte = stream.read(1)
        stream.seek(-1, 1)
        stream.write(bytes([byte[0] ^ 1]))


def _zero_a_block(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.seek(HEADERS + _used_blocks(path)[0] * BLOCK)
        stream.write(bytes(BLOCK))


def _cut(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.truncate(HEADERS + _used_blocks(path)[-1] * BLOCK)


@pytest.mark.parametrize("damage", [_flip_a_byte, _zero_a_block, _cut])
def test_a_damaged_block_of_the_writer_replaces_no_snapshot(warehouse, tmp_path, damage):
    store(warehouse, "T", "new", 3000, 1)
    good = tmp_path / "good.duckdb"
    shutil.copyfile(warehouse.snapshot, good)
    damage(warehouse.writer)
    with pytest.raises(WarehouseDamagedError, match=r"writer\.duckdb cannot be read"):
        warehouse.publish()
    assert warehouse.snapshot.read_bytes() == good.read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_damage_of_a_block_that_holds_nothing_is_mended(warehouse, tmp_path):
    store(warehouse, "T", "huge", 500_000, 0)
    forget(warehouse, "T", "huge")
    with duckdb.connect(str(warehouse.writer), read_only=True) as connection:
        size = "SELECT free_blocks FROM pragma_database_size()"
        assert connection.execute(size).fetchall()[0][0] > 2
        used = {
            block
            for (table,) in connection.execute(
                "SELECT schema_name || '.' || table_name FROM duckdb_tables()"
            ).fetchall()
            for (block,) in connection.execute(
                f"SELECT block_id FROM pragma_storage_info('{table}')"
            ).fetchall()
        } | {
            block
            for (block,) in connection.execute(
                "SELECT block_id FROM pragma_metadata_info()"
            ).fetchall()
        }
    n_blocks = (warehouse.writer.stat().st_size - HEADERS) // BLOCK
    free = next(n for n in range(n_blocks) if n not in used)
    with warehouse.writer.open("r+b") as stream:
        stream.seek(HEADERS + free * BLOCK + 8)
        stream.write(b"nothing")
    warehouse.publish()
    assert_equals_whole_copy(warehouse, tmp_path)
    file = warehouse.writer.stat().st_ino
    warehouse.publish(anew=True)
    assert warehouse.writer.stat().st_ino == file


def test_a_log_beside_the_writer_is_published_with_it(warehouse, tmp_path):
    """A killed process leaves rows in the log."""
    files = [warehouse.writer, log_of(warehouse.writer)]
    kept = tmp_path / "kept"
    kept.mkdir()
    connection = duckdb.connect(str(warehouse.writer))
    connection.execute("SET checkpoint_threshold = '1GB'")
    connection.execute("DELETE FROM outcomes.outcome_matrix WHERE model = 'm0'")
    for file in files:
        shutil.copyfile(file, kept / file.name)
    connection.close()
    for file in files:
        shutil.copyfile(kept / file.name, file)
    warehouse.publish()
    assert "m0" not in set(warehouse.query("FROM outcomes.outcome_matrix")["model"])
    assert_equals_whole_copy(warehouse, tmp_path)
