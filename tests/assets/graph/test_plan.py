"""Why a partition is stale, and what a plan makes of it."""

from __future__ import annotations

import pytest
from support import tiny_suite

from mteblite_assets.graph.keys import Scope
from mteblite_assets.graph.plan import plan_asset, scoped_keys, wanted_assets
from mteblite_assets.graph.requirements import Requirement, combined_version, why_stale
from mteblite_assets.graph.work import SettingsContext

NEED = Requirement("2", "abc", {"pool_items": "v1"})
FRESH = {
    "status": "ok", "code_version": "2", "settings_hash": "abc", "inputs": {"pool_items": "v1"},
    "reason": None,
}  # fmt: skip


@pytest.mark.parametrize(("entry", "reason"), [
    (None, "missing"),
    (FRESH, ""),
    (FRESH | {"status": "failed", "reason": "no weights"}, "failed before: no weights"),
    (FRESH | {"code_version": "1"}, "code version 1 -> 2"),
    (FRESH | {"settings_hash": "abd"}, "settings changed"),
    (FRESH | {"inputs": {"pool_items": "v0"}}, "input changed: pool_items"),
    (FRESH | {"inputs": {}}, "input changed: pool_items"),
    (FRESH | {"inputs": {"pool_items": "v1", "roster": "v1"}}, "input changed: deps"),
])  # fmt: skip
def test_why_stale(entry, reason):
    assert why_stale(entry, NEED) == reason


def test_combined_version_is_dagsters_and_free_of_order():
    assert combined_version({"a": "v"}) == "v"
    both = combined_version({"a": "v", "b": "w"})
    assert both == combined_version({"b": "w", "a": "v"})
    assert both != combined_version({"a": "w", "b": "v"})


@pytest.fixture
def context(home):
    from mteblite_assets.cli.session import Session

    session = Session()
    return SettingsContext({}, session.catalog, session.bench.ports)


def _declared(name):
    from mteblite_assets.flow import declarations

    return declarations()[name]


def _ledger(context):
    from mteblite_assets.cli.session import Session
    from mteblite_resources.database.ledger import read_ledger

    with Session().bench.warehouse.session() as connection:
        return read_ledger(connection)


def _plan(context, ledger, name, **options):
    declaration = _declared(name)
    keys = scoped_keys(declaration, Scope(tiny_suite.SUITE), context.catalog)
    return plan_asset(declaration, keys, context, ledger, **options)


def test_fresh_ledger_plans_nothing_and_force_everything(context):
    ledger = _ledger(context)
    plan = _plan(context, ledger, "item_outcomes")
    assert (plan.run, plan.blocked, len(plan.fresh)) == ([], [], 15)
    forced = _plan(context, ledger, "item_outcomes", force=True)
    assert set(forced.run) == set(plan.fresh)
    assert set(forced.reasons.values()) == {"forced"}


def test_lost_upstream_blocks_and_a_failed_one_says_why(context):
    ledger = dict(_ledger(context))
    first, second = sorted(k for a, k in ledger if a == "embedding_stats")[:2]
    del ledger["embedding_stats", first]
    ledger["embedding_stats", second] = ledger["embedding_stats", second] | {
        "status": "failed", "reason": "vectors are NaN",
    }  # fmt: skip
    plan = _plan(context, ledger, "item_outcomes")
    assert sorted(plan.blocked) == [first, second]
    assert plan.reasons[first] == "embedding_stats is not there yet"
    assert plan.reasons[second] == f"embedding_stats {second} failed: vectors are NaN"
    waiting = _plan(context, ledger, "item_outcomes", will_run={"embedding_stats": {first}})
    assert (waiting.run, waiting.blocked) == ([first], [second])


def test_gathering_goes_on_without_a_failed_member(context):
    ledger = dict(_ledger(context))
    key = min(k for a, k in ledger if a == "item_outcomes")
    ledger["item_outcomes", key] = ledger["item_outcomes", key] | {"status": "failed"}
    plan = _plan(context, ledger, "outcome_matrix")
    assert plan.blocked == []
    assert plan.run == [key.split("|")[1]]
    assert plan.reasons[plan.run[0]] == "input changed: item_outcomes"


def test_scope_of_stages_keeps_flow_order(context):
    names = [d.name for d in wanted_assets(Scope("tiny", stages=("outcomes", "pools")))]
    assert names == ["pool_items", "pool_costs", "item_outcomes", "outcome_matrix"]
    named = ("candidate_full_scores", "lite_scores")
    everything = [d.name for d in wanted_assets(Scope("tiny", assets=named))]
    assert "candidate_full_scores" in everything
    assert "candidate_full_scores" not in [d.name for d in wanted_assets(Scope("tiny"))]


def test_other_suites_are_out_of_scope(context):
    for name in ("suite_tasks", "pool_items", "item_outcomes", "calibrations", "lite_scores"):
        keys = scoped_keys(_declared(name), Scope(tiny_suite.SUITE), context.catalog)
        assert keys
        assert all("tiny" in k.lower() for k in keys)
