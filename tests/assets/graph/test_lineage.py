"""What assets declare is what they read and write: every declaration, and the guards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
import yaml

from mteblite_assets.flow import ASSETS, declarations
from mteblite_assets.graph.declaration import Declaration, Produced, in_flow_order
from mteblite_assets.graph.driver import run_partitions
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import Work
from mteblite_resources.declared_tables import DeclaredTables, UndeclaredTableError, named_tables
from mteblite_resources.home import Home
from mteblite_resources.reports import PROJECT
from mteblite_resources.workbench import Workbench

PARTITIONED = [asset for asset in ASSETS if asset.grain is not Grain.HOME]
REPORTS = declarations()["dbt_reports"]


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse without rows."""
    bench = Workbench(Home(tmp_path_factory.mktemp("lineage") / "home"))
    with bench.warehouse.session() as connection:
        yield connection


def tables_in(schema: duckdb.DuckDBPyConnection, sql: str) -> set[str]:
    """Tables that a query reads; those of views instead of the views."""
    rows = schema.execute("SELECT schema_name || '.' || view_name, sql FROM duckdb_views()")
    views = dict(rows.fetchall())
    found: set[str] = set()
    waiting = named_tables(sql)
    while waiting:
        name = waiting.pop()
        if name in views:
            waiting |= named_tables(views[name]) - {name}
        else:
            found.add(name)
    return found


def writer_of(table: str) -> str:
    """The asset that writes a table."""
    (name,) = [a.name for a in ASSETS if table in (*a.tables, *a.self_written)]
    return name


def above(asset: Declaration) -> set[str]:
    """An asset and all that it is made of."""
    return {asset.name}.union(*(above(declarations()[dep]) for dep in asset.deps))


def test_every_table_has_one_asset_that_writes_it(schema: duckdb.DuckDBPyConnection) -> None:
    rows = schema.execute(
        "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE schema_name <> 'ledger'"
    )
    declared = [t for a in PARTITIONED for t in (*a.tables, *a.self_written)]
    assert sorted(declared) == sorted(name for (name,) in rows.fetchall())


@pytest.mark.parametrize("asset", PARTITIONED, ids=lambda asset: asset.name)
def test_a_check_reads_its_asset_and_what_that_is_made_of(
    schema: duckdb.DuckDBPyConnection, asset: Declaration
) -> None:
    for check in asset.checks:
        read = {writer_of(table) for table in tables_in(schema, check.violations)}
        assert read <= above(asset), f"{asset.name}.{check.name}"


def test_the_reports_declare_what_their_sources_hold(schema: duckdb.DuckDBPyConnection) -> None:
    text = (PROJECT / "models/staging/_sources.yml").read_text()
    named = {
        f"{source['schema']}.{table['name']}": table["config"]["meta"]["dagster"]["asset_key"]
        for source in yaml.safe_load(text)["sources"]
        for table in source["tables"]
    }
    read = {table: {writer_of(t) for t in tables_in(schema, f"FROM {table}")} for table in named}
    assert set().union(*read.values()) == set(REPORTS.deps)
    assert all(set(key) <= read[table] for table, key in named.items())
    for path in sorted((PROJECT / "models/staging").glob("*.sql")):
        sources = {
            f"{schema_name}.{name}"
            for schema_name, name in re.findall(r"source\('(\w+)', '(\w+)'\)", path.read_text())
        }
        shown = {key for source in sources for key in named[source]}
        assert shown == set().union(*(read[source] for source in sources)), path.name


def made(compute: Any, **options: Any) -> Declaration:
    """A declaration of an asset of suites without deps."""
    return Declaration(
        compute.__name__, "suites", Grain.SUITE, (), ("suites.roster",), "1", compute, **options
    )


def reasons(asset: Declaration, tmp_path: Path) -> list[str]:
    """Why the partition of suite `sample` failed, if it did."""
    bench = Workbench(Home(tmp_path / "home"))
    done = run_partitions(asset, ["sample"], bench.catalog(), bench)
    return [d.reason for d in done if d.status == "failed"]


def test_a_function_that_reads_another_table_fails(tmp_path: Path) -> None:
    def curious(work: Work) -> Produced:
        """One row per suite."""
        return Produced({"suites.roster": work.rows("suites.suite_tasks")})

    (reason,) = reasons(made(curious), tmp_path)
    assert "asset curious reads suites.suite_tasks, which no dep of it writes" in reason


def test_a_function_that_makes_rows_of_another_table_fails(tmp_path: Path) -> None:
    def generous(work: Work) -> Produced:
        """One row per suite."""
        return Produced({"suites.suite_facts": pd.DataFrame([{"benchmark": "b"}])})

    (reason,) = reasons(made(generous), tmp_path)
    assert "asset generous made rows of suites.suite_facts" in reason


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("FROM suites.roster", "reads suites.roster"),
        ("DELETE FROM Suites.roster", "changes suites.roster"),
        ("UPDATE suites.roster SET family = 'f'", "changes suites.roster"),
        ("DROP TABLE suites.roster", "may not run a statement DROP"),
        ("FROM suites.suite_facts; DROP SCHEMA suites", "may not run a statement DROP"),
    ],
)
def test_a_function_that_queries_another_table_fails(tmp_path: Path, sql: str, words: str) -> None:
    def querying(work: Work) -> Produced:
        """One row per suite."""
        with work.tables.session() as connection:
            connection.execute(sql)
        return Produced({})

    (reason,) = reasons(made(querying, self_written=["suites.suite_facts"]), tmp_path)
    assert "asset querying" in reason
    assert words in reason


def test_what_a_dep_writes_itself_may_be_read_but_not_changed(tmp_path: Path) -> None:
    bench = Workbench(Home(tmp_path / "home"))
    tables = DeclaredTables("reader", ["suites.suite_facts"], (), bench.warehouse)
    with tables.session() as connection:
        assert connection.execute("FROM suites.suite_facts").fetchall() == []
        with pytest.raises(UndeclaredTableError, match=r"asset reader changes suites\.suite_facts"):
            connection.execute("INSERT INTO suites.suite_facts BY NAME SELECT 's' AS suite")


def test_a_record_grows_also_where_another_run_adds_to_it_meanwhile(tmp_path: Path) -> None:
    bench = Workbench(Home(tmp_path / "home"))
    others: list[str] = ["another"]

    def record(work: Work) -> Produced:
        """One row per run."""
        earlier = work.rows("suites.roster")[["model", "family"]]
        name = others.pop() if others else "own"
        if name == "another":
            others.append("meanwhile")
            list(run_partitions(asset, ["sample"], bench.catalog(), bench))
        new = pd.DataFrame([{"model": name, "family": "f"}])
        return Produced({"suites.roster": pd.concat([earlier, new])})

    asset = made(record, keeps_rows=True)
    done = run_partitions(asset, ["sample"], bench.catalog(), bench, force=True)
    assert [d.status for d in done] == ["ok"]
    with bench.warehouse.session() as connection:
        kept = connection.execute("SELECT model FROM suites.roster").fetchall()
    assert kept == [("meanwhile",), ("own",)]


def test_nothing_that_a_function_is_handed_reaches_the_warehouse(tmp_path: Path) -> None:
    bench = Workbench(Home(tmp_path / "home"))
    seen: set[int] = set()
    waiting: list[object] = [bench.ports]
    while waiting:
        thing = waiting.pop()
        assert thing is not bench.warehouse
        assert not isinstance(thing, Workbench)
        if id(thing) not in seen and type(thing).__module__.startswith("mteblite"):
            seen.add(id(thing))
            waiting += list(vars(thing).values())
    assert len(seen) > 8


@pytest.mark.parametrize("assets", [
    lambda: (declarations()["roster"], declarations()["roster"]),
    lambda: (declarations()["resolved_tasks"], declarations()["suite_tasks"]),
])  # fmt: skip
def test_the_order_of_assets_is_checked(assets) -> None:
    with pytest.raises(ValueError, match=r"two assets are named roster|not declared above it"):
        in_flow_order(*assets())


def test_two_assets_cannot_write_one_table() -> None:
    def other(work: Work) -> Produced:
        """One row per suite."""
        return Produced({})

    asset = made(other)
    with pytest.raises(ValueError, match=r"suites.roster is written by roster and by other"):
        in_flow_order(declarations()["roster"], asset)
