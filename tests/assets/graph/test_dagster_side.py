"""What Dagster knows: versions, provenance, checks."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
)
from support.tiny_suite import SUITE, TASKS

from mteblite_assets.cli.session import QUIET, Session
from mteblite_assets.flow import ASSETS
from mteblite_assets.graph.keys import Grain
from mteblite_resources.database.ledger import read_ledger

PARTITIONED = {asset.name: asset for asset in ASSETS if asset.grain is not Grain.HOME}
"""All but the reports, whose models are the assets that Dagster shows."""
FIRST = f"{SUITE}/{TASKS[0]}"


@pytest.fixture
def session(home) -> Session:
    made = Session()
    _ = made.definitions
    return made


def _ledger(session):
    with session.bench.warehouse.session() as connection:
        return read_ledger(connection)


def _materialization(session, asset, key):
    record = session.instance.get_latest_data_version_record(dg.AssetKey(asset), partition_key=key)
    return record.event_log_entry.asset_materialization


def test_every_partition_is_an_event_with_version_and_provenance(session):
    entries = {k: e for k, e in _ledger(session).items() if k[0] in PARTITIONED}
    assert len(entries) > 70
    for name, declaration in PARTITIONED.items():
        keys = {k for a, k in entries if a == name}
        known = session.instance.get_materialized_partitions(dg.AssetKey(name))
        assert set(known) == keys
        for key in keys:
            event, entry = _materialization(session, name, key), entries[name, key]
            assert event.tags["dagster/data_version"] == entry["data_version"]
            assert event.tags["dagster/code_version"] == declaration.code_version
            for dep, version in entry["inputs"].items():
                assert event.tags[f"dagster/input_data_version/{dep}"] == version
                assert event.tags[f"dagster/input_event_pointer/{dep}"].isdigit()
            assert "rows" in event.metadata


def test_dagster_calls_every_partition_fresh(session):
    graph = session.definitions.resolve_asset_graph()
    resolver = CachingStaleStatusResolver(
        session.instance, graph, LoadingContextForTest(session.instance)
    )
    ledger = _ledger(session)
    for name in PARTITIONED:
        for key in [k for a, k in ledger if a == name][:2]:
            causes = resolver.get_stale_causes(dg.AssetKey(name), key)
            status = resolver.get_status(dg.AssetKey(name), key)
            assert status == StaleStatus.FRESH, (name, key, [c.reason for c in causes])


def test_every_check_was_evaluated_and_passed(session):
    ran_assets = {asset for asset, _ in _ledger(session)}
    for name, declaration in PARTITIONED.items():
        if name not in ran_assets:
            continue  # no suite here asks for official scores
        if declaration.on_request:
            continue
        for check in declaration.checks:
            key = dg.AssetCheckKey(dg.AssetKey(name), check.name)
            records = session.instance.event_log_storage.get_asset_check_execution_history(
                key, limit=1
            )
            assert records, key
            assert records[0].event.dagster_event.event_specific_data.passed, key


def test_run_of_one_partition_gives_one_materialization(session):
    before = _ledger(session)["calibrations", FIRST]
    result = session.execute_partition("calibrations", FIRST)
    assert result.success
    events = result.asset_materializations_for_node("calibrations")
    assert [e.partition for e in events] == [FIRST]
    assert events[0].tags["dagster/data_version"] == before["data_version"]
    evaluations = result.get_asset_check_evaluations()
    assert [e.check_name for e in evaluations] == ["lines_finite"]
    assert all(e.passed for e in evaluations)


def test_run_of_a_range_logs_each_partition(session):
    keys = sorted(f"{SUITE}/{t}" for t in TASKS)
    graph = session.definitions.resolve_asset_graph()
    ordered = graph.get(dg.AssetKey("selected_items")).partitions_def.get_partition_keys()
    mine = [k for k in ordered if k in keys]
    result = session.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        run_config={**QUIET, "ops": {"selected_items": {"config": {"force": True}}}},
        instance=session.instance,
        asset_selection=[dg.AssetKey("selected_items")],
        tags={ASSET_PARTITION_RANGE_START_TAG: mine[0], ASSET_PARTITION_RANGE_END_TAG: mine[-1]},
    )
    assert result.success
    events = result.asset_materializations_for_node("selected_items")
    ledger = _ledger(session)
    made = {e.partition: e.tags["dagster/data_version"] for e in events}
    assert made == {k: ledger["selected_items", k]["data_version"] for k in mine}
    assert len(events) == len(mine) == 3
