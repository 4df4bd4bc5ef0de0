"""A warehouse whose files other programs hold open, wrote into, or damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import mteblite_resources.database.duckdb_files as opening
from mteblite_resources.database.duckdb_files import WarehouseBusyError, WarehouseDamagedError
from mteblite_resources.database.ledger import read_ledger, write_ledger
from mteblite_resources.warehouse import Warehouse

CLIENT = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("INSERT INTO ledger.schema_version (digest) VALUES ('of the client')")
print("open", flush=True)
sys.stdin.read()
"""
ENTRY = {"status": "ok", "code_version": "1", "settings_hash": "s", "inputs": {}}
COUNT = "SELECT count(*)::BIGINT AS n FROM ledger.partitions"


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    found = Warehouse(tmp_path / "writer.duckdb", tmp_path / "mteblite.duckdb")
    with found.session() as connection:
        write_ledger(connection, "asset", "key", ENTRY)
    found.publish()
    return found


def open_in_a_client(path: Path) -> subprocess.Popen:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert client.stdout.readline() == "open\n"
    return client


def test_a_client_that_writes_into_the_snapshot_holds_nobody_up(warehouse):
    client = open_in_a_client(warehouse.snapshot)
    try:
        with pytest.raises(duckdb.IOException, match="lock"):
            duckdb.connect(str(warehouse.snapshot), read_only=True)
        assert warehouse.query(COUNT)["n"].tolist() == [1]
    finally:
        client.kill()
        client.wait()
    # What the client wrote is no part of the warehouse, and its log does not spoil the snapshot.
    assert warehouse.query(COUNT)["n"].tolist() == [1]
    known = warehouse.query("SELECT digest FROM ledger.schema_version")["digest"]
    assert "of the client" not in set(known)


def test_the_log_of_a_killed_client_does_not_spoil_the_next_snapshot(warehouse):
    client = open_in_a_client(warehouse.snapshot)
    client.kill()
    client.wait()
    assert warehouse.snapshot.with_name("mteblite.duckdb.wal").exists()
    warehouse.publish()
    assert warehouse.query(COUNT)["n"].tolist() == [1]


@pytest.mark.parametrize("damage", [b"", b"no database " * 1000, None])
def test_a_damaged_snapshot_is_published_again(warehouse, damage):
    whole = warehouse.snapshot.read_bytes()
    warehouse.snapshot.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert warehouse.query(COUNT)["n"].tolist() == [1]


def test_a_damaged_snapshot_without_a_writer_is_named(warehouse):
    warehouse.snapshot.write_bytes(b"no database " * 1000)
    warehouse.writer.unlink()
    with pytest.raises(WarehouseDamagedError, match=r"mteblite\.duckdb cannot be read"):
        warehouse.query(COUNT)


def test_a_damaged_writer_is_named_and_a_copy_of_the_snapshot_mends_it(warehouse):
    warehouse.writer.write_bytes(b"no database " * 1000)
    with (
        pytest.raises(WarehouseDamagedError, match=r"writer\.duckdb cannot be read .*copy"),
        warehouse.session(),
    ):
        pass
    warehouse.writer.write_bytes(warehouse.snapshot.read_bytes())
    with warehouse.session() as connection:
        write_ledger(connection, "asset", "key", ENTRY | {"reason": "replaced"})
        assert read_ledger(connection)["asset", "key"]["reason"] == "replaced"


def test_a_writer_that_a_client_has_open_is_named_with_the_process(warehouse, monkeypatch):
    once = opening._connect_in_turn.retry_with(stop=lambda _: True)
    monkeypatch.setattr(opening, "_connect_in_turn", once)
    client = open_in_a_client(warehouse.writer)
    try:
        with (
            pytest.raises(WarehouseBusyError, match=f"open for writing.*process {client.pid}"),
            warehouse.session(),
        ):
            pass
    finally:
        client.kill()
        client.wait()
