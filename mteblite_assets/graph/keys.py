"""Partition keys: what a key stands for, which upstream keys it is made of, and scopes of keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from mteblite.suites.catalog import Catalog, TaskEntry


class Grain(StrEnum):
    """What one partition of an asset is."""

    SUITE = "suite"
    POOL_TASK = "pool_task"
    POOL_TASK_MODEL = "pool_task_model"
    SUITE_TASK = "suite_task"
    SUITE_CANDIDATE = "suite_candidate"
    SOURCE = "source"
    HOME = "home"


SOURCES_INGESTED = ("official",)
"""Sources of results that are read into the warehouse, for all suites; partitions of `SOURCE`."""


HOME_KEY = "all"
"""The one partition of `HOME`: all suites together."""


@dataclass(frozen=True)
class Scope:
    """Which partitions a command is about; empty means all.

    Attributes:
        suite: its name.
        tasks: names of tasks.
        models: names of models.
        stages: names of stages.
        assets: names of assets; also those that run only on request.
    """

    suite: str
    tasks: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()


def columns_of(grain: Grain, key: str) -> dict[str, str]:
    """Return the key columns of a partition, as its tables name them.

    Multi-dimensional keys are Dagster's: dimension values joined by `|`, dimensions in
    alphabetical order (`model|pool_task`, `candidate|suite`).
    """
    if grain is Grain.HOME:
        return {}
    if grain is Grain.SUITE:
        return {"suite": key}
    if grain is Grain.SOURCE:
        return {"source": key}
    if grain is Grain.POOL_TASK:
        return {"pool_task": key}
    if grain is Grain.SUITE_TASK:
        suite, task = key.split("/", 1)
        return {"suite": suite, "task": task}
    model, other = key.split("|", 1)
    return {"pool_task" if grain is Grain.POOL_TASK_MODEL else "suite": other, "model": model}


def key_sql(grain: Grain) -> str:
    """Return SQL of the key of the partition that a row of a table belongs to."""
    if grain is Grain.SUITE_TASK:
        return "suite || '/' || task"
    if grain in (Grain.POOL_TASK_MODEL, Grain.SUITE_CANDIDATE):
        return "model || '|' || " + ("pool_task" if grain is Grain.POOL_TASK_MODEL else "suite")
    return grain.value


def model_key(model: str, other: str) -> str:
    """Return the two-dimensional key of a model and a pool_task or suite."""
    return f"{model}|{other}"


def all_keys(grain: Grain, catalog: Catalog) -> list[str]:
    """Return every partition that the suites ask for, in a stable order."""
    if grain is Grain.SUITE:
        return sorted(catalog.suites)
    if grain is Grain.SOURCE:
        return list(SOURCES_INGESTED)
    if grain is Grain.HOME:
        return [HOME_KEY]
    if grain is Grain.POOL_TASK:
        return sorted({e.pool_task for e in catalog.entries()})
    if grain is Grain.SUITE_TASK:
        return sorted(e.suite_task for e in catalog.entries())
    if grain is Grain.POOL_TASK_MODEL:
        pools = sorted({e.pool_task for e in catalog.entries()})
        # Model by model, so that a run opens each encoder once.
        return sorted(model_key(m, p) for p in pools for m in catalog.pool_models(p))
    return [
        model_key(m.name, suite.name)
        for _, suite in sorted(catalog.suites.items())
        for m in suite.candidates()
    ]


def asked_for(grain: Grain, keys: Iterable[str], catalog: Catalog) -> list[str]:
    """Return those of the keys that some suite asks for, in their order.

    Lite scores may be asked of any model of a suite, not of its candidates alone.
    """
    if grain is Grain.SUITE_CANDIDATE:
        known = {model_key(m.name, s.name) for s in catalog.suites.values() for m in s.models}
    else:
        known = set(all_keys(grain, catalog))
    return [key for key in keys if key in known]


def upstream_keys(upstream: Grain, grain: Grain, key: str, catalog: Catalog) -> list[str]:
    """Return the upstream partitions that one partition is made of, sorted.

    Raises:
        ValueError: the two grains have no such relation.
    """
    if upstream is grain:
        return [key]
    if grain is Grain.HOME:
        return all_keys(upstream, catalog)
    columns = columns_of(grain, key)
    entries = _entries(columns, catalog)
    if upstream is Grain.SUITE:
        return sorted({e.suite for e in entries} | ({columns["suite"]} & set(catalog.suites)
                       if "suite" in columns else set()))  # fmt: skip
    if upstream is Grain.POOL_TASK:
        return sorted({e.pool_task for e in entries})
    if upstream is Grain.SUITE_TASK:
        return sorted(e.suite_task for e in entries)
    if upstream is Grain.SOURCE:
        # None where no suite asks for official scores: there is nothing to wait for then.
        asked = {s for e in entries for s in catalog.suite(e.suite).file.reference_scores}
        return [source for source in SOURCES_INGESTED if source in asked]
    if upstream is Grain.POOL_TASK_MODEL and grain is Grain.POOL_TASK:
        return sorted(model_key(m, key) for m in catalog.pool_models(key))
    raise ValueError(f"{grain} is not made of {upstream}")


def gathers(upstream: Grain, grain: Grain) -> bool:
    """Whether a partition is made of several upstream ones, of which some may be absent."""
    several = {
        (Grain.POOL_TASK_MODEL, Grain.POOL_TASK),
        (Grain.POOL_TASK, Grain.SUITE),
        (Grain.POOL_TASK, Grain.SUITE_CANDIDATE),
        (Grain.SUITE_TASK, Grain.SUITE),
        (Grain.SUITE, Grain.POOL_TASK),
    }
    return grain is Grain.HOME or (upstream, grain) in several


def _entries(columns: dict[str, str], catalog: Catalog) -> list[TaskEntry]:
    if "pool_task" in columns:
        return catalog.entries_of_pool(columns["pool_task"])
    suite = catalog.suites.get(columns["suite"])
    if suite is None:
        return []
    return [e for e in suite.tasks if columns.get("task", e.task) == e.task]
