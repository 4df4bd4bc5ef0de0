"""Bring partitions up to date: plan each asset in flow order, run stale partitions, report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mteblite_assets.cli.session import Session, errors_of
from mteblite_assets.flow import declarations
from mteblite_assets.graph.damage import MARK
from mteblite_assets.graph.keys import Scope
from mteblite_assets.graph.plan import AssetPlan, plan_scope
from mteblite_assets.graph.runs import OP, scope_config
from mteblite_assets.graph.upkeep import failures_in

PASSES = 3
STATES = ("fresh", "stale", "missing", "failed")


class RunError(OSError):
    """A run ended early, for a reason outside its partitions."""


@dataclass
class Report:
    """Partitions that ran, were fresh or failed, by asset and by stage."""

    suite: str
    plans: dict[str, AssetPlan] = field(default_factory=dict)
    stage_of: dict[str, str] = field(default_factory=dict)
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    failed_checks: list[str] = field(default_factory=list)
    unusable: dict[str, str] = field(default_factory=dict)
    """By candidate why it is not usable; no failure of the suite."""

    def add(self, asset: str, stage: str, plan: AssetPlan) -> None:
        """Add a plan of one asset to its earlier plans."""
        known = self.plans.setdefault(asset, AssetPlan())
        self.stage_of[asset] = stage
        known.run += [k for k in plan.run if k not in known.run]
        known.fresh = [k for k in {*known.fresh, *plan.fresh} if k not in known.run]
        known.blocked = plan.blocked
        known.reasons |= plan.reasons
        self.set_aside(asset, {k: plan.reasons[k] for k in plan.unusable})

    def set_aside(self, asset: str, refused: Mapping[str, str]) -> None:
        """Count candidates as not usable instead of as failed."""
        for key, reason in refused.items():
            self.failed.get(asset, {}).pop(key, None)
            self.unusable[key.split("|")[0]] = reason

    def add_run(self, made: dict[str, Any]) -> None:
        """Add the output of one run of the `materialize` job."""
        for name, entry in made["assets"].items():
            fields = {k: entry[k] for k in ("run", "fresh", "blocked", "reasons")}
            self.add(name, entry["stage"], AssetPlan(**fields))
            failed = self.failed.setdefault(name, {})
            for key in entry["run"]:  # what failed in an earlier pass and does no more
                failed.pop(key, None)
            failed.update(entry["failed"])
        self.failed_checks += [c for c in made["failed_checks"] if c not in self.failed_checks]

    def merge(self, other: Report) -> None:
        """Add the report of a later command on the same suite."""
        self.unusable |= other.unusable
        for name, plan in other.plans.items():
            self.add(name, other.stage_of[name], plan)
            self.failed.setdefault(name, {}).update(other.failed.get(name, {}))
        self.failed_checks += [c for c in other.failed_checks if c not in self.failed_checks]

    def problems(self, asset: str) -> dict[str, str]:
        """Return by partition why partitions of an asset failed or could not run."""
        plan = self.plans.get(asset, AssetPlan())
        return {key: plan.reasons[key] for key in plan.blocked} | self.failed.get(asset, {})

    @property
    def good(self) -> bool:
        """Whether all partitions are fresh or ran and all checks passed."""
        blocked = any(p.blocked for p in self.plans.values())
        return not any(self.failed.values()) and not self.failed_checks and not blocked

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form by stage; `assets` has the same by asset."""
        stages: dict[str, Any] = {}
        assets: dict[str, Any] = {}
        for name, plan in self.plans.items():
            entry = {
                "run": plan.run,
                "fresh": len(plan.fresh),
                "reasons": plan.reasons,
                "blocked": plan.blocked,
                "failed": self.failed.get(name, {}),
            }
            assets[name] = entry
            stage = stages.setdefault(
                self.stage_of[name],
                {"run": [], "fresh": 0, "reasons": {}, "blocked": [], "failed": {}},
            )
            for key in ("run", "blocked", "fresh"):
                stage[key] = stage[key] + entry[key]
            stage["reasons"] |= plan.reasons
            stage["failed"] |= entry["failed"]
        return {
            "suite": self.suite,
            "stages": stages,
            "assets": assets,
            "failed_checks": self.failed_checks,
            "unusable": self.unusable,
        }


def materialize(session: Session, scope: Scope, *, force: bool = False) -> Report:
    """Run missing and stale partitions of a scope, asset by asset in flow order."""
    session.check_scope(scope)
    session.fail_dead_runs()
    session.resolve(scope.suite)
    report = Report(scope.suite)
    # A later pass runs what another process made stale during the first one.
    for attempt in range(PASSES):
        config = scope_config(scope, force=force and not attempt)
        result = session.execute_job(config, {"suite": scope.suite, "command": "materialize"})
        made = _output_of(result)
        report.add_run(made)
        ran = [k for entry in made["assets"].values() for k in entry["run"]]
        if not ran or (failures_in(made) and not _found_damage(session, report)):
            break
    _set_aside(session, scope, report)
    return report


def _found_damage(session: Session, report: Report) -> bool:
    """Say whether a pass found damaged inputs of the scope, which another pass makes again."""
    return any(
        asset in report.plans and entry["status"] != "ok" and str(entry["reason"]).startswith(MARK)
        for (asset, _), entry in session.ledger().items()
    )


def _set_aside(session: Session, scope: Scope, report: Report) -> None:
    """Set candidates aside that were refused; not those that were asked for by name."""
    plans = plan_scope(
        scope, session.catalog, session.bench.ports, session.ledger(), look_ahead=False
    )
    for name, plan in plans.items():
        failed = report.failed.get(name, {})
        asked = [k for k in plan.unusable if k in failed and scope.models]
        report.set_aside(name, {k: plan.reasons[k] for k in plan.unusable if k not in asked})


def _output_of(result: Any) -> dict[str, Any]:
    """Return the output of a run of the job.

    Raises:
        RunError: the run ended without output; has the innermost error of the failed step or run.
    """
    if not any(event.is_successful_output for event in result.all_events):
        errors = errors_of(result)
        if not errors:
            raise RunError("the run ended without a result")
        raise RunError(str(errors[-1].message).strip().splitlines()[0])
    return dict(result.output_for_node(OP))


def dry_run(session: Session, scope: Scope, *, force: bool = False) -> Report:
    """Return what `materialize` would run at most, and why; equal results stop later assets."""
    session.check_scope(scope)
    session.resolve(scope.suite)
    report = Report(scope.suite)
    plans = plan_scope(scope, session.catalog, session.bench.ports, session.ledger(), force=force)
    for name, plan in plans.items():
        report.add(name, declarations()[name].stage, plan)
    return report


def status(session: Session, suite: str) -> list[dict[str, Any]]:
    """Return by stage the numbers of partitions by state, and the reasons of those not fresh.

    A reason has `state`, `reason`, `count` and `first`, the first partition that has it.
    """
    ledger = session.ledger()
    stages: dict[str, dict[str, Any]] = {}
    plans = plan_scope(Scope(suite), session.catalog, session.bench.ports, ledger, look_ahead=False)
    for name, plan in plans.items():
        title = declarations()[name].stage
        stage = stages.setdefault(
            title, {"stage": title, **dict.fromkeys(STATES, 0), "reasons": {}}
        )
        stage["fresh"] += len(plan.fresh)
        for key in [*plan.run, *plan.blocked, *plan.unusable]:
            entry = ledger.get((name, key))
            state = "missing" if entry is None else "failed" if entry["status"] != "ok" else "stale"
            stage[state] += 1
            reason = plan.reasons[key].removeprefix("failed before: ")
            known = stage["reasons"].setdefault(
                (state, reason),
                {"state": state, "reason": reason, "count": 0, "first": f"{name} {key}"},
            )
            known["count"] += 1
    return [{**s, "reasons": list(s["reasons"].values())} for s in stages.values()]
