"""A writer or a snapshot that is lost, old, or of another version: nothing good is replaced."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest
from support.warehouse_columns import columns_of

from mteblite_resources.database import warehouse_schema
from mteblite_resources.database.duckdb_files import (
    WarehouseDamagedError,
    WarehouseLostError,
    WarehouseVersionError,
)
from mteblite_resources.database.ledger import read_ledger, write_ledger
from mteblite_resources.database.publication import previous_of
from mteblite_resources.database.row_facts import hashed_rows
from mteblite_resources.database.warehouse_schema import NUMBER, Version, own_version
from mteblite_resources.warehouse import Warehouse, replace_partition

SCHEMAS = sorted(Path(__file__).parents[1].joinpath("support", "schemas").glob("*.sql"))
"""Schema files of the commits that name them; the first is that of the first command line."""
ENTRY = {"status": "ok", "code_version": "1", "settings_hash": "s", "inputs": {}}
KEYS = "SELECT partition_key FROM ledger.partitions ORDER BY 1"


def make(folder: Path) -> Warehouse:
    return Warehouse(folder / "writer.duckdb", folder / "mteblite.duckdb")


def note(warehouse: Warehouse, key: str) -> None:
    with warehouse.session() as connection:
        write_ledger(connection, "asset", key, ENTRY)


def keys(warehouse: Warehouse) -> list[str]:
    return warehouse.query(KEYS)["partition_key"].tolist()


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    found = make(tmp_path)
    note(found, "one")
    found.publish()
    return found


# --- the writer's file --------------------------------------------------------------------------


def _delete(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _new(path: Path) -> None:
    path.unlink()
    duckdb.connect(str(path)).close()


@pytest.mark.parametrize("lose", [_delete, _empty, _new])
def test_a_lost_writer_replaces_no_snapshot_and_is_restored(warehouse, lose, caplog):
    lose(warehouse.writer)
    for act in (warehouse.publish, warehouse.ledger, lambda: note(warehouse, "two")):
        with pytest.raises(WarehouseLostError, match="mteblite home restore"):
            act()
    assert keys(warehouse) == ["one"]
    assert "mteblite home restore" in caplog.text
    assert warehouse.restore() == warehouse.snapshot
    note(warehouse, "two")
    assert keys(warehouse) == ["one", "two"]


def test_a_writer_with_tables_and_no_rows_replaces_no_snapshot(warehouse, tmp_path):
    other = make(tmp_path / "other")
    with other.session():
        pass
    warehouse.writer.write_bytes(other.writer.read_bytes())
    with pytest.raises(WarehouseLostError):
        warehouse.publish()
    assert keys(warehouse) == ["one"]
    warehouse.restore()
    assert [key for _, key in warehouse.ledger()] == ["one"]


def test_the_previous_snapshot_restores_where_the_last_one_is_damaged(warehouse):
    note(warehouse, "two")
    warehouse.publish()
    warehouse.snapshot.write_bytes(b"no database " * 1000)
    warehouse.writer.write_bytes(b"no database " * 1000)
    assert warehouse.restore() == previous_of(warehouse.snapshot)
    assert keys(warehouse) == ["one"]
    assert warehouse.writer.with_name("writer.damaged.duckdb").exists()


def test_a_whole_writer_is_not_replaced_and_nothing_restores_from_nothing(warehouse):
    with pytest.raises(ValueError, match="is whole"):
        warehouse.restore()
    warehouse.writer.unlink()
    warehouse.snapshot.write_bytes(b"no database " * 1000)
    with pytest.raises(WarehouseDamagedError, match="neither"):
        warehouse.restore()


# --- the snapshots ------------------------------------------------------------------------------


def test_a_snapshot_that_is_missing_or_older_is_published_by_who_reads_it(warehouse):
    first = warehouse.snapshot.read_bytes()
    note(warehouse, "two")
    assert keys(warehouse) == ["one", "two"]
    warehouse.snapshot.unlink()
    assert keys(warehouse) == ["one", "two"]
    warehouse.snapshot.write_bytes(first)  # an old copy, with the time of now
    assert keys(warehouse) == ["one", "two"]


def test_a_snapshot_is_published_once_for_each_change(warehouse):
    state = warehouse.snapshot.stat().st_mtime_ns
    assert keys(warehouse) == ["one"]
    warehouse.publish()
    assert warehouse.snapshot.stat().st_mtime_ns == state
    warehouse.publish(anew=True)
    assert warehouse.snapshot.stat().st_mtime_ns != state


def test_readers_leave_the_publication_to_the_run_that_goes_on(warehouse):
    with warehouse.running():
        note(warehouse, "two")
        assert keys(warehouse) == ["one"]
    assert keys(warehouse) == ["one", "two"]


def test_the_last_two_snapshots_are_kept(warehouse):
    for key in ("two", "three"):
        note(warehouse, key)
        warehouse.publish()
    with duckdb.connect(str(previous_of(warehouse.snapshot)), read_only=True) as connection:
        assert connection.execute(KEYS).fetchall() == [("one",), ("two",)]


def test_a_publication_that_fails_leaves_the_snapshot_and_no_scratch(warehouse, monkeypatch):
    note(warehouse, "two")
    monkeypatch.setattr("mteblite_resources.database.publication._keep_previous", _raise_full)
    with pytest.raises(OSError, match="No space"):
        warehouse.publish()
    with duckdb.connect(str(warehouse.snapshot), read_only=True) as connection:
        assert connection.execute(KEYS).fetchall() == [("one",)]
    assert not list(warehouse.snapshot.parent.glob(".*"))


def _raise_full(_: Path) -> None:
    raise OSError(28, "No space left on device")


# --- versions -----------------------------------------------------------------------------------


def test_the_number_is_raised_with_the_schema_file():
    # After a change of warehouse_schema.sql: raise NUMBER, and put number and digest here.
    assert own_version() == Version(3, "624db1d08cbeee3c")


def test_files_of_a_newer_version_are_refused_untouched(warehouse):
    for path in (warehouse.writer, warehouse.snapshot):
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                f"UPDATE ledger.schema_version SET number = {NUMBER + 1}, digest = 'new'"
            )
            connection.execute("ALTER TABLE suites.suite_facts ADD COLUMN n_absent_models INTEGER")
    before = [path.read_bytes() for path in (warehouse.writer, warehouse.snapshot)]
    for act in (warehouse.ledger, warehouse.publish, lambda: warehouse.query(KEYS)):
        with pytest.raises(WarehouseVersionError, match=f"number {NUMBER + 1}"):
            act()
    assert [p.read_bytes() for p in (warehouse.writer, warehouse.snapshot)] == before


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda path: path.stem)
def test_an_older_writer_is_brought_up_and_a_copy_is_kept(tmp_path, schema):
    new = make(tmp_path / "new")
    note(new, "one")
    old = make(tmp_path)
    with duckdb.connect(str(old.writer)) as connection:
        connection.execute(schema.read_text())
        connection.execute(
            "INSERT INTO ledger.partitions (asset, partition_key, status, n_rows) "
            "VALUES ('asset', 'one', 'ok', 3)"
        )
    before = old.writer.read_bytes()
    assert old.ledger()["asset", "one"]["n_rows"] == 3
    copies = list(tmp_path.glob("writer.before-*.duckdb"))
    assert [path.read_bytes() for path in copies] == [before]
    assert columns_of(old.writer) == columns_of(new.writer)
    assert keys(old) == ["one"]
    assert len(list(tmp_path.glob("writer.before-*.duckdb"))) == 1


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    old = make(tmp_path)
    with duckdb.connect(str(old.writer)) as connection:
        connection.execute(SCHEMAS[0].read_text())
    before = columns_of(old.writer)
    monkeypatch.setattr(warehouse_schema, "_fill_type_facts", lambda _: _raise_full(Path()))
    with pytest.raises(OSError, match="No space"):
        old.ledger()
    assert columns_of(old.writer) == before


# --- hashes of rows -----------------------------------------------------------------------------


def test_the_hash_of_rows_sees_values_and_neither_order_nor_new_columns(warehouse):
    import pandas as pd

    key = {"suite": "s", "task": "t"}
    rows = pd.DataFrame({"item_id": ["a", "b"], "weight": [1.0, 2.0]})

    def fact(connection):
        wanted = pd.DataFrame([key])
        return hashed_rows(connection, ["selections.selected_items"], wanted)[0]

    with warehouse.session() as connection:
        assert read_ledger(connection)["asset", "one"]["content"] is None
        found = []
        for frame in (rows, rows[::-1], rows.assign(weight=[2.0, 1.0]), rows[:1], rows[:0]):
            replace_partition(connection, "selections.selected_items", key, frame)
            found.append(fact(connection))
        replace_partition(connection, "selections.selected_items", key, rows)
        connection.execute("ALTER TABLE selections.selected_items ADD COLUMN later DOUBLE")
        later = fact(connection)
    assert found[0] == found[1] == later
    assert len({f.content for f in found}) == 4
    assert [f.n_rows for f in found] == [2, 2, 2, 1, 0]


def test_files_are_readable_by_others(tmp_path):
    from mteblite.files import write_json

    before = os.umask(0o022)
    try:
        write_json(tmp_path / "record.json", {})
    finally:
        os.umask(before)
    assert (tmp_path / "record.json").stat().st_mode & 0o777 == 0o644
