"""The one judge of what the daemon runs: what `plan` says of the suites in use, nothing else.

New checkpoints have priority: their lite scores are asked for at once, beside any other run. All
else runs suite by suite, one run at a time. The last of these runs builds the reports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from mteblite.suites.catalog import Catalog, Suite
from mteblite_assets.flow import ASSETS
from mteblite_assets.graph.keys import Grain, Scope, columns_of
from mteblite_assets.graph.plan import AssetPlan, plan_scope, suites_in_use
from mteblite_assets.graph.requirements import Ledger
from mteblite_assets.graph.runs import (
    KIND,
    LIGHT,
    PLAN,
    SCORES,
    models_being_scored,
    runs_in_progress,
)
from mteblite_assets.reference_scores.assets import official_results
from mteblite_resources.workbench import Workbench

LITE_SCORES, REPORTS = "lite_scores", "dbt_reports"
TOGETHER = 16
"""New checkpoints of one run; the first scores of many are there before the last ones."""
ATTEMPTS = 3
"""Runs for the same stale partitions; a run that ends early leaves them stale."""
BACKLOG = ("input changed", "code version")
"""Reasons why many candidates are stale at once; a new checkpoint does not wait for them."""


@dataclass(frozen=True)
class Request:
    """A run to start: new checkpoints (`scores`), or all that is stale of a suite (`upkeep`)."""

    kind: str
    scope: Scope
    digest: str


@dataclass(frozen=True)
class Verdict:
    """What is to run now, and why the rest is not.

    Attributes:
        requests: runs to start.
        stale: by suite with anything stale, a digest of it.
        notes: why something does not run.
    """

    requests: list[Request]
    stale: dict[str, str]
    notes: list[str]


@dataclass(frozen=True)
class _Stale:
    """What is stale of one suite now; what follows it is not counted, because it needs no look."""

    plans: Mapping[str, AssetPlan]

    def digest(self, asset: str = "", keys: Collection[str] = ()) -> str:
        """Hash what is stale, or these partitions; it changes with files and with runs alone."""
        marks = {
            name: sorted((k, plan.marks[k]) for k in plan.run if not asset or k in keys)
            for name, plan in self.plans.items()
            if plan.run and asset in ("", name)
        }
        text = json.dumps(marks, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16] if marks else ""

    def new_candidates(self) -> dict[str, str]:
        """Return partitions by model of candidates that are new or whose files changed."""
        plan = self.plans[LITE_SCORES]
        keys = [k for k in plan.run if not plan.reasons[k].startswith(BACKLOG)]
        return {columns_of(Grain.SUITE_CANDIDATE, key)["model"]: key for key in keys}

    def anything_but(self, scores: Collection[str]) -> bool:
        """Return whether anything is stale but light assets and these lite scores."""
        return any(
            key not in scores
            for name, plan in self.plans.items()
            if name not in LIGHT
            for key in plan.run
        )

    def note(self, suite: str) -> list[str]:
        """Return one sentence on partitions that failed and are left to a person, if any."""
        failed = [plan.reasons[k] for plan in self.plans.values() for k in plan.unusable]
        if not failed:
            return []
        count = f"{len(failed)} partitions are" if len(failed) > 1 else "1 partition is"
        as_is = "as they are" if len(failed) > 1 else "as it is"
        return [f"suite {suite}: {count} left {as_is}: {failed[0]}"]


def judge(
    bench: Workbench,
    ledger: Ledger,
    instance: dg.DagsterInstance,
    *,
    arrived: Collection[tuple[str, str]],
    before: Mapping[str, str],
) -> Verdict:
    """Return the runs to start.

    Args:
        bench: the home.
        ledger: what has been made.
        instance: knows the runs.
        arrived: (suite, model) of checkpoints that are known to be finished.
        before: `Verdict.stale` of the last look. What is stale runs when two looks in a row see
            the same, so that files that are being copied are read once.
    """
    catalog = bench.catalog()
    suites = {
        name: _stale(name, catalog, bench, ledger)
        for name in suites_in_use(bench.warehouse, catalog)
    }
    digests = {name: stale.digest() for name, stale in suites.items()}
    settled = {name for name, digest in digests.items() if before.get(name) == digest}
    requests: list[Request] = []
    waiting: list[str] = []
    scored: set[str] = set()
    for name, stale in suites.items():
        new = stale.new_candidates()
        running = models_being_scored(instance, name)
        scored |= running | set(new)
        finished = {m for s, m in arrived if s == name}
        ready = [m for m in new if m not in running and (name in settled or m in finished)]
        ordered = _newest_first(ready, catalog.suite(name))
        requests += _scores(name, stale, {m: new[m] for m in ordered})
        if stale.anything_but([new[m] for m in new]):
            waiting.append(name)
    if waiting or not scored:
        requests += _upkeep(waiting, suites, settled, bench)
    notes = [note for name, stale in suites.items() for note in stale.note(name)]
    if scored:
        notes.append(f"new checkpoints: {', '.join(sorted(scored))}")
    allowed = [r for r in requests if _may_start(r, instance, notes)]
    return Verdict(allowed, {name: d for name, d in digests.items() if d}, notes)


def _stale(suite: str, catalog: Catalog, bench: Workbench, ledger: Ledger) -> _Stale:
    """Plan a suite; what failed on the same inputs is left to a person."""
    scope = Scope(suite, assets=_assets(bench))
    return _Stale(plan_scope(scope, catalog, bench.ports, ledger, retry=False, look_ahead=False))


def _newest_first(models: Collection[str], suite: Suite) -> list[str]:
    """Order models by the time of their folders: of many, the last checkpoints are scored first."""

    def written(model: str) -> float:
        path = suite.model(model).path
        return Path(path).stat().st_mtime if path and Path(path).exists() else 0.0

    return sorted(models, key=lambda model: (-written(model), model))


def _assets(bench: Workbench) -> tuple[str, ...]:
    """Return what the daemon keeps up to date.

    A daemon that was started without the place of the official results does not empty what others
    have read from it.
    """
    unset = bench.ports.full_scores.sources.location is None
    left = {official_results.name} if unset else set()
    return tuple(a.name for a in ASSETS if not a.on_request and a.name not in left)


def _scores(suite: str, stale: _Stale, new: Mapping[str, str]) -> list[Request]:
    """Return the runs of new checkpoints, some models each."""
    models = list(new)
    parts = [models[i : i + TOGETHER] for i in range(0, len(models), TOGETHER)]
    return [
        Request(
            "scores",
            Scope(suite, models=tuple(part), assets=SCORES),
            stale.digest(LITE_SCORES, [new[m] for m in part]),
        )
        for part in parts
    ]


def _upkeep(
    waiting: list[str], suites: Mapping[str, _Stale], settled: Collection[str], bench: Workbench
) -> list[Request]:
    """Return the run of the first suite that is stale; that of the last one builds the reports."""
    assets = _assets(bench)
    if len(waiting) > 1:
        assets = tuple(name for name in assets if name != REPORTS)
    elif not waiting:
        waiting = [n for n, stale in suites.items() if any(stale.plans[a].run for a in LIGHT)]
        assets = LIGHT
    return [
        Request("upkeep", Scope(name, assets=assets), suites[name].digest())
        for name in waiting[:1]
        if name in settled
    ]


def _may_start(request: Request, instance: dg.DagsterInstance, notes: list[str]) -> bool:
    """Whether no run is in the way: upkeep waits for any other run but those of checkpoints."""
    suite = request.scope.suite
    if request.kind == "upkeep":
        running = runs_in_progress(instance)
        others = [run for run in running if run.tags.get(KIND) != "scores"]
        if others:
            notes.append(f"suite {suite} waits for run {others[0].run_id[:8]}")
            return False
    tried = instance.get_runs(dg.RunsFilter(tags={PLAN: request.digest}), limit=ATTEMPTS)
    if len(tried) >= ATTEMPTS:
        notes.append(
            f"suite {suite} is stale, but {ATTEMPTS} runs of the same partitions ended early, the "
            f"last is {tried[0].run_id[:8]}: see its log, then `mteblite materialize --suite "
            f"{suite}`"
        )
        return False
    return True
