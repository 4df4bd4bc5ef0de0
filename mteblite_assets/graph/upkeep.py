"""The `materialize` job: every asset in flow order, each running only what is stale in a scope.

`mteblite materialize` runs this job and so can the UI. It is made of ops that log the
materializations of the assets, because a run of partitioned assets covers one contiguous range
of one kind of partition, and what is stale after a change is none.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from mteblite.suites.catalog import Catalog
from mteblite_assets.graph.build import progress_log
from mteblite_assets.graph.declaration import Declaration, declarations
from mteblite_assets.graph.driver import run_partitions
from mteblite_assets.graph.events import evaluate, log_materialization
from mteblite_assets.graph.partitions import CANDIDATES, MODELS
from mteblite_assets.graph.plan import Scope, plan_asset, scoped_keys, wanted_assets
from mteblite_assets.graph.work import SettingsContext
from mteblite_resources.resources import RESOURCE_KEYS, workbench_of
from mteblite_resources.warehouse import read_ledger
from mteblite_resources.workbench import Workbench

JOB = "materialize"
SCOPE_OP = "scope"
END_OP = "conclude"

REPORT = dg.Out(dict, io_manager_key="in_memory")
"""The report goes from op to op in memory; nothing is pickled."""

SCOPE_SCHEMA = {
    "suite": dg.Field(str, description="Name of the suite."),
    "tasks": dg.Field([str], default_value=[], description="Only these tasks; empty: all."),
    "models": dg.Field([str], default_value=[], description="Only these models; empty: all."),
    "stages": dg.Field([str], default_value=[], description="Only these stages; empty: all."),
    "force": dg.Field(bool, default_value=False, description="Run fresh partitions, too."),
    "on_request": dg.Field(
        [str], default_value=[], description="Assets outside the upkeep, e.g. candidate_full_scores"
    ),
}


def materialize_job() -> dg.JobDefinition:
    """Return the job; its graph is the chain of all declared assets."""
    stages = [_asset_op(d) for d in declarations().values()]

    @dg.job(
        name=JOB,
        description="Brings a suite up to date: runs what is missing or stale, nothing else.",
        executor_def=dg.in_process_executor,
    )
    def materialize() -> None:
        report = _scope_op()()
        for op in stages:
            report = op(report)
        _end_op()(report)

    return materialize


def scope_config(scope: Scope, *, force: bool, on_request: list[str]) -> dict[str, Any]:
    """Return the run configuration of the job for a scope."""
    config = {
        "suite": scope.suite,
        "tasks": list(scope.tasks),
        "models": list(scope.models),
        "stages": list(scope.stages),
        "force": force,
        "on_request": on_request,
    }
    return {"ops": {SCOPE_OP: {"config": config}}}


def register_partitions(instance: dg.DagsterInstance, catalog: Catalog, bench: Workbench) -> None:
    """Make the dynamic partitions of all registered models, and take back those of none."""
    suites = catalog.suites.values()
    wanted = {
        MODELS: {m.name for s in suites for m in s.references()},
        CANDIDATES: {m.name for s in suites for m in s.candidates()},
    }
    for definition, names in wanted.items():
        present = set(instance.get_dynamic_partitions(definition))
        if names - present:
            instance.add_dynamic_partitions(definition, sorted(names - present))
        for gone in sorted(present - names):
            instance.delete_dynamic_partition(definition, gone)
    bench.sync_models()


def _scope_op() -> dg.OpDefinition:
    @dg.op(
        name=SCOPE_OP,
        out=REPORT,
        config_schema=SCOPE_SCHEMA,
        required_resource_keys=set(RESOURCE_KEYS),
    )
    def scope(context: dg.OpExecutionContext) -> dict[str, Any]:
        """Resolve the suite's tasks and make the partitions of its models."""
        bench = workbench_of(context.resources)
        suite = bench.resolve(bench.catalog().suite(context.op_config["suite"]))
        register_partitions(context.instance, bench.catalog(), bench)
        context.log.info(f"suite {suite.name}: {len(suite.tasks)} tasks")
        return {**context.op_config, "assets": {}, "failed_checks": []}

    return scope


def _asset_op(declaration: Declaration) -> dg.OpDefinition:
    @dg.op(
        name=f"run_{declaration.name}",
        description=declaration.description,
        ins={"report": dg.In(dict)},
        out=REPORT,
        required_resource_keys=set(RESOURCE_KEYS),
        tags={"stage": declaration.stage},
    )
    def run_asset(context: dg.OpExecutionContext, report: dict[str, Any]) -> dict[str, Any]:
        scope = Scope(
            report["suite"], tuple(report["tasks"]), tuple(report["models"]),
            tuple(report["stages"]),
        )  # fmt: skip
        asked = declaration in wanted_assets(scope, on_request=True)
        if not asked or (declaration.on_request and declaration.name not in report["on_request"]):
            return report
        return _run_stale(context, declaration, scope, report)

    return run_asset


def _run_stale(
    context: dg.OpExecutionContext, declaration: Declaration, scope: Scope, report: dict[str, Any]
) -> dict[str, Any]:
    bench = workbench_of(context.resources)
    catalog = bench.catalog()
    with bench.warehouse.session() as connection:
        ledger = read_ledger(connection)
    plan = plan_asset(
        declaration, scoped_keys(declaration, scope, catalog),
        SettingsContext({}, catalog, bench), ledger, force=report["force"],
    )  # fmt: skip
    log = progress_log(context)
    failed: dict[str, str] = {}
    checks: list[str] = []
    if plan.run:
        head = f"== {declaration.stage} / {declaration.name}"
        log(f"{head}: {len(plan.run)} to run, {len(plan.fresh)} fresh")
        for done in run_partitions(
            declaration, plan.run, catalog, bench,
            run_id=context.run_id, force=report["force"], log=log,
        ):  # fmt: skip
            if done.status == "failed":
                failed[done.key] = done.reason
            elif done.status == "ok":
                log_materialization(context.instance, context.log_event, declaration, done)
        bench.warehouse.publish()
        for evaluation in evaluate(declaration, bench.warehouse):
            context.log_event(evaluation)  # type: ignore[arg-type]  # accepted, not yet typed
            if not evaluation.passed:
                checks.append(f"{declaration.name}.{evaluation.check_name}")
    entry = {
        "stage": declaration.stage, "run": plan.run, "fresh": plan.fresh,
        "blocked": plan.blocked, "reasons": plan.reasons, "failed": failed,
    }  # fmt: skip
    return {
        **report,
        "assets": {**report["assets"], declaration.name: entry},
        "failed_checks": [*report["failed_checks"], *checks],
    }


def _end_op() -> dg.OpDefinition:
    @dg.op(name=END_OP, ins={"report": dg.In(dict)}, out=REPORT)
    def conclude(context: dg.OpExecutionContext, report: dict[str, Any]) -> dict[str, Any]:
        """Say what ran; the run fails here if a partition or a check did, after all others ran."""
        problems = [*report["failed_checks"], *failures_in(report)]
        for name, entry in report["assets"].items():
            context.log.info(f"{name}: {len(entry['run'])} ran, {len(entry['fresh'])} fresh")
        if problems:
            raise dg.Failure(description="; ".join(problems[:5]), allow_retries=False)
        return report

    return conclude


def failures_in(report: Mapping[str, Any]) -> list[str]:
    """Return one line per failed partition of a report."""
    return [
        f"{name} {key}: {reason}"
        for name, entry in report["assets"].items()
        for key, reason in entry["failed"].items()
    ]
