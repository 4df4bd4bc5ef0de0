"""What is fresh, what must run and why: decided from the ledger, never from times.

A partition is fresh when its ledger entry has the code version, the settings and the input data
versions that a run would have now. The command line, the daemon and the runs ask here alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mteblite.suites.catalog import Catalog
from mteblite_assets.flow import ASSETS, declarations
from mteblite_assets.graph.declaration import Declaration
from mteblite_assets.graph.keys import (
    Grain,
    Scope,
    all_keys,
    columns_of,
    model_key,
    upstream_keys,
)
from mteblite_assets.graph.requirements import (
    Ledger,
    Requirement,
    require_safely,
    what_changed,
    why_stale,
)
from mteblite_assets.graph.work import SettingsContext
from mteblite_assets.suites.assets import suite_tasks

if TYPE_CHECKING:
    from mteblite_resources.warehouse import Warehouse
    from mteblite_resources.workbench import Ports

_ACCIDENT = re.compile(r"\w*(Error|Exception|Timeout)\w*: ")
"""Reasons that begin with the class of an error: refusals are sentences without one."""


@dataclass
class AssetPlan:
    """Partitions of one asset: what would run and why, what is fresh, what is blocked.

    Attributes:
        run: would run.
        fresh: are as a run would make them.
        blocked: cannot run, because an input is missing.
        unusable: would fail again as long as nothing changes, so they are not run: candidates
            that were refused or are gone, and, where no retry is asked for, all that failed or
            whose files cannot be read.
        reasons: by partition, why it would run, is blocked or is not usable.
        marks: by partition to run, what it would be made of and which run made it last.
    """

    run: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)


def suites_in_use(warehouse: Warehouse, catalog: Catalog) -> list[str]:
    """Return the suites that were built or asked for once, sorted; nothing else is kept fresh."""
    return sorted(warehouse.ledger_keys(suite_tasks.name) & set(catalog.suites))


def why_unusable(
    declaration: Declaration,
    entry: Mapping[str, Any] | None,
    need: Requirement,
    *,
    retry: bool = True,
) -> str:
    """Return why a partition is not run, where another run would fail again; else "".

    With `retry`, only candidates that were refused are not run. An error of another kind (memory,
    network) may be gone in another run.
    """
    if not retry and need.unreadable:
        return need.blocked
    if entry is None or entry["status"] == "ok" or what_changed(entry, need):
        return ""
    reason = str(entry["reason"] or "")
    if not retry:
        return reason
    if declaration.grain is not Grain.SUITE_CANDIDATE or declaration.on_request:
        return ""
    if need.unreadable:
        return reason if reason == need.blocked else ""
    return reason if not need.blocked and not _ACCIDENT.match(reason) else ""


def scoped_keys(declaration: Declaration, scope: Scope, catalog: Catalog) -> list[str]:
    """Return the partitions of an asset that a command is about.

    Lite scores are those of the suite's candidates. Any model of the suite that is named together
    with the asset has one, too.
    """
    suite = catalog.suite(scope.suite)
    if declaration.grain is Grain.SUITE_CANDIDATE and scope.assets and scope.models:
        return [model_key(suite.model(name).name, suite.name) for name in scope.models]
    pools = {e.pool_task for e in suite.tasks if not scope.tasks or e.task in scope.tasks}
    keys = []
    for key in all_keys(declaration.grain, catalog):
        columns = columns_of(declaration.grain, key)
        if columns.get("suite", suite.name) != suite.name:
            continue
        if columns.get("source") not in (None, *suite.file.reference_scores):
            continue
        if "pool_task" in columns and columns["pool_task"] not in pools:
            continue
        if "task" in columns and scope.tasks and columns["task"] not in scope.tasks:
            continue
        if "model" in columns and not _model_in_scope(columns, scope, suite.models):
            continue
        keys.append(key)
    return keys


def plan_asset(
    declaration: Declaration,
    keys: Iterable[str],
    context: SettingsContext,
    ledger: Ledger,
    *,
    force: bool = False,
    retry: bool = True,
    will_run: Mapping[str, set[str]] | None = None,
) -> AssetPlan:
    """Decide for each partition of an asset.

    Args:
        declaration: the asset.
        keys: the partitions asked about.
        context: catalog and ports (its `key` is replaced per partition).
        ledger: what has been made.
        force: run fresh ones too.
        retry: run those again that failed on what they would have now.
        will_run: for a dry run, the partitions of assets above that would run first.
    """
    plan = AssetPlan()
    for key in keys:
        own = SettingsContext(columns_of(declaration.grain, key), context.catalog, context.ports)
        need = require_safely(declaration, own, key, ledger)
        pending = _pending_upstream(declaration, key, own, will_run or {})
        entry = ledger.get((declaration.name, key))
        reason = why_stale(entry, need)
        refused = "" if force or (pending and not need.unreadable) else why_unusable(
            declaration, entry, need, retry=retry
        )  # fmt: skip
        if refused:
            plan.unusable.append(key)
            plan.reasons[key] = refused
        elif need.unreadable:
            plan.run.append(key)
            plan.reasons[key] = need.blocked
        elif need.blocked and not pending:
            plan.blocked.append(key)
            plan.reasons[key] = need.blocked
        elif reason or pending or force:
            plan.run.append(key)
            waiting = f"{pending} will run" if pending and not reason.startswith("missing") else ""
            plan.reasons[key] = waiting or reason or "forced"
        else:
            plan.fresh.append(key)
        if plan.run[-1:] == [key]:
            plan.marks[key] = f"{need} {entry['run_id'] if entry else ''}"
    return plan


def plan_scope(
    scope: Scope,
    catalog: Catalog,
    ports: Ports,
    ledger: Ledger,
    *,
    force: bool = False,
    retry: bool = True,
    look_ahead: bool = True,
) -> dict[str, AssetPlan]:
    """Return the plan of every asset of a scope by name, in flow order.

    Args:
        scope: what is asked about.
        catalog: suites and models as they are now.
        ports: read settings from files.
        ledger: what has been made.
        force: run fresh partitions, too.
        retry: run those again that failed on what they would have now.
        look_ahead: count partitions that follow one that will run; equal results stop them.
    """
    plans: dict[str, AssetPlan] = {}
    will_run: dict[str, set[str]] = {}
    context = SettingsContext({}, catalog, ports)
    for declaration in wanted_assets(scope):
        keys = scoped_keys(declaration, scope, catalog)
        plan = plan_asset(
            declaration, keys, context, ledger, force=force, retry=retry, will_run=will_run
        )
        plans[declaration.name] = plan
        if look_ahead:
            will_run[declaration.name] = set(plan.run)
    return plans


def wanted_assets(scope: Scope) -> list[Declaration]:
    """Return the assets of a scope in flow order; those on request only where they are named."""
    return [
        d
        for d in ASSETS
        if (not scope.stages or d.stage in scope.stages)
        and (d.name in scope.assets if scope.assets else not d.on_request)
    ]


def _model_in_scope(columns: Mapping[str, str], scope: Scope, models: Sequence[Any]) -> bool:
    wanted = scope.models or tuple(m.name for m in models)
    return columns["model"] in wanted


def _pending_upstream(
    declaration: Declaration, key: str, context: SettingsContext, will_run: Mapping[str, set[str]]
) -> str:
    for dep in declaration.deps:
        running = will_run.get(dep)
        if not running or not declaration.reads(dep, context):
            continue
        above = declarations()[dep].grain
        if running & set(upstream_keys(above, declaration.grain, key, context.catalog)):
            return dep
    return ""
