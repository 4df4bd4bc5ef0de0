"""A warehouse of an earlier version is brought up to this one when it is opened."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
from support.warehouse_columns import columns_of

from mteblite_resources.database.warehouse_schema import SCHEMA
from mteblite_resources.warehouse import Warehouse


def test_new_tables_and_columns_come_and_rows_stay(tmp_path: Path) -> None:
    new = Warehouse(tmp_path / "new.duckdb", tmp_path / "new-snapshot.duckdb")
    with new.session():
        pass
    old = tmp_path / "old.duckdb"
    # As before the columns that are added by ALTER, and before one of the newer tables.
    before = re.sub(r"ALTER TABLE [^;]*;", "", SCHEMA.read_text())
    before = before.replace(
        "CREATE TABLE IF NOT EXISTS lite_scores.type_scores (", "DROP TABLE t ("
    )
    before = re.sub(r"DROP TABLE t \([^;]*;", "", before)
    before = re.sub(r"CREATE TABLE IF NOT EXISTS ledger\.schema_version[^;]*;", "", before)
    before = before.replace(", part_of VARCHAR", "").replace(", provenance VARCHAR", "")
    before = before.replace(", r.provenance", "")
    gone = ("suites", "suite_facts", "n_absent_models")
    before = before.replace("n_left_out INTEGER\n", "n_left_out INTEGER, n_absent_models INTEGER\n")
    with duckdb.connect(str(old)) as connection:
        connection.execute(before)
        connection.execute(
            "INSERT INTO validation.validation_metrics VALUES ('s', 'p', 'v', 'macro', 'mae', 1, 3)"
        )
        connection.execute(
            "INSERT INTO suites.suite_tasks (suite, task, task_type, main_metric) VALUES "
            "('s', 'A', 'STS', 'cosine_spearman'), ('s', 'B', 'Retrieval', 'ndcg_at_10'), "
            "('s', 'C', 'Summarization', 'cosine_spearman'), ('s', 'D', 'Unknown', 'm')"
        )
    assert gone in columns_of(old)
    assert columns_of(old) - {gone} < columns_of(tmp_path / "new.duckdb")
    warehouse = Warehouse(old, tmp_path / "snapshot.duckdb")
    for _ in range(2):
        with warehouse.session() as connection:
            rows = connection.execute(
                "SELECT value, lower FROM validation.validation_metrics"
            ).fetchall()
            facts = connection.execute(
                "SELECT lowest_score, lowest_outcome, mean_is_score FROM suites.suite_tasks "
                "ORDER BY task"
            ).fetchall()
        assert rows == [(1.0, None)]
        assert facts == [(-1, 0, False), (0, 0, True), (-1, -1, True), (None, None, None)]
    assert columns_of(old) == columns_of(tmp_path / "new.duckdb")
    warehouse.publish()
    assert len(warehouse.query("SELECT * FROM suites.suite_models")) == 0
