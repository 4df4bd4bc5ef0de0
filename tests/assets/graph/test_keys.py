"""Keys: what they stand for, which exist, what each is made of."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mteblite.suites.catalog import Catalog, make_suite
from mteblite.suites.resolution import Resolution
from mteblite.suites.suite_file import SuiteFile
from mteblite.suites.suite_model import SuiteModel
from mteblite_assets.graph.keys import (
    Grain,
    all_keys,
    asked_for,
    columns_of,
    gathers,
    model_key,
    upstream_keys,
)


def _model(name: str, role: str = "reference") -> SuiteModel:
    return SuiteModel.model_validate({"name": name, "family": name, "role": role})


def _suite(name: str, tasks: Sequence[str], models: Sequence[SuiteModel], **settings: object):
    file = SuiteFile.model_validate({"name": name, "tasks": list(tasks), **settings})
    return make_suite(file, f"{name}.yaml", models, Resolution())


@pytest.fixture
def catalog() -> Catalog:
    """Two suites that share the pool of STS12 and differ in K and models."""
    suites = [
        _suite("big", ["STS12", "STS13"], [_model("m2"), _model("m1"), _model("c", "candidate")]),
        _suite("small", ["STS12"], [_model("m3")], k=5),
    ]
    return Catalog({s.name: s for s in suites}, {})


def _pool(catalog: Catalog, suite: str, task: str) -> str:
    return catalog.suite(suite).task(task).pool_task


@pytest.mark.parametrize(("grain", "key", "columns"), [
    (Grain.SUITE, "eng", {"suite": "eng"}),
    (Grain.POOL_TASK, "STS12/abc", {"pool_task": "STS12/abc"}),
    (Grain.SUITE_TASK, "eng/STS12", {"suite": "eng", "task": "STS12"}),
    (Grain.POOL_TASK_MODEL, "org/m|STS12/abc", {"model": "org/m", "pool_task": "STS12/abc"}),
    (Grain.SUITE_CANDIDATE, "org/m@dim=2|eng", {"model": "org/m@dim=2", "suite": "eng"}),
])  # fmt: skip
def test_columns_of_a_key(grain, key, columns):
    assert columns_of(grain, key) == columns


def test_two_dimensional_keys_are_dagsters():
    import dagster as dg

    key = dg.MultiPartitionKey({"pool_task": "STS12/abc", "model": "org/m"})
    assert str(key) == model_key("org/m", "STS12/abc")
    candidate = dg.MultiPartitionKey({"suite": "eng", "candidate": "org/m"})
    assert str(candidate) == model_key("org/m", "eng")


def test_suites_that_draw_the_same_pool_share_it_and_its_models(catalog):
    shared = _pool(catalog, "big", "STS12")
    assert shared == _pool(catalog, "small", "STS12")
    assert all_keys(Grain.POOL_TASK, catalog) == sorted({shared, _pool(catalog, "big", "STS13")})
    keys = all_keys(Grain.POOL_TASK_MODEL, catalog)
    assert [k for k in keys if k.endswith(shared)] == [f"{m}|{shared}" for m in ("m1", "m2", "m3")]
    assert not any(k.startswith("c|") for k in keys)
    assert all_keys(Grain.SUITE_CANDIDATE, catalog) == ["c|big"]


@pytest.mark.parametrize("settings", [
    {"pool": {"max_items": 7}}, {"pool": {"seed": 1}}, {"max_tokens": 64},
])  # fmt: skip
def test_other_pool_settings_make_a_pool_of_its_own(catalog, settings):
    other = _suite("other", ["STS12"], [], **settings)
    assert other.task("STS12").pool_task != _pool(catalog, "big", "STS12")


def test_upstream_of_every_grain(catalog):
    shared, own = _pool(catalog, "big", "STS12"), _pool(catalog, "big", "STS13")
    cases = [
        (Grain.POOL_TASK_MODEL, Grain.POOL_TASK, shared, [f"{m}|{shared}" for m in
                                                         ("m1", "m2", "m3")]),
        (Grain.POOL_TASK, Grain.POOL_TASK_MODEL, f"m1|{shared}", [shared]),
        (Grain.POOL_TASK, Grain.SUITE_TASK, "small/STS12", [shared]),
        (Grain.SUITE, Grain.POOL_TASK, shared, ["big", "small"]),
        (Grain.SUITE, Grain.SUITE_TASK, "big/STS13", ["big"]),
        (Grain.POOL_TASK, Grain.SUITE, "big", sorted([shared, own])),
        (Grain.SUITE_TASK, Grain.SUITE, "big", ["big/STS12", "big/STS13"]),
        (Grain.SUITE, Grain.SUITE_CANDIDATE, "c|big", ["big"]),
        (Grain.SUITE_TASK, Grain.SUITE_TASK, "big/STS12", ["big/STS12"]),
    ]  # fmt: skip
    for upstream, grain, key, expected in cases:
        assert upstream_keys(upstream, grain, key, catalog) == expected, (upstream, grain)
        assert gathers(upstream, grain) or len(expected) == 1, (upstream, grain)
    with pytest.raises(ValueError, match="is not made of"):
        upstream_keys(Grain.SUITE_CANDIDATE, Grain.SUITE, "big", catalog)


def test_only_what_a_suite_asks_for(catalog):
    shared, own = _pool(catalog, "big", "STS12"), _pool(catalog, "big", "STS13")
    assert asked_for(Grain.POOL_TASK_MODEL, [f"m3|{shared}"], catalog)
    assert not asked_for(Grain.POOL_TASK_MODEL, [f"m3|{own}"], catalog)
    assert not asked_for(Grain.POOL_TASK_MODEL, [f"c|{shared}"], catalog)
    # Lite scores may be asked of a reference model, too.
    assert asked_for(Grain.SUITE_CANDIDATE, ["m1|big"], catalog)
    assert not asked_for(Grain.SUITE_CANDIDATE, ["m1|small"], catalog)
    assert not asked_for(Grain.SUITE_CANDIDATE, ["c"], catalog)
