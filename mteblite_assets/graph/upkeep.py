"""The `materialize` job: every asset in flow order, each running only what is stale in a scope.

`mteblite materialize` runs this job and so can the UI. Its one op logs the materializations of the
assets, because a run of partitioned assets covers one contiguous range of one kind of partition,
and what is stale after a change is none.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import dagster as dg
from dagster import AssetCheckEvaluation

from mteblite.suites.catalog import Catalog
from mteblite_assets.graph.build import run_log
from mteblite_assets.graph.damage import lost_rows, mark_damaged
from mteblite_assets.graph.declaration import Declaration
from mteblite_assets.graph.driver import run_partitions
from mteblite_assets.graph.events import RunEvents, evaluate, evaluations_in
from mteblite_assets.graph.keys import Grain, Scope, columns_of
from mteblite_assets.graph.partitions import CANDIDATES, MODELS
from mteblite_assets.graph.plan import plan_asset, scoped_keys, suites_in_use, wanted_assets
from mteblite_assets.graph.registered import record_registered_models
from mteblite_assets.graph.requirements import Ledger, entries_read
from mteblite_assets.graph.runs import JOB, OP, models_being_scored, process_tags, scope_of
from mteblite_assets.graph.work import SettingsContext
from mteblite_assets.suites.assets import registered_models
from mteblite_resources.database.ledger import read_ledger
from mteblite_resources.resources import RESOURCE_KEYS, workbench_of
from mteblite_resources.workbench import Workbench

REPORT = dg.Out(dict, io_manager_key="in_memory")
"""The report stays in memory; nothing is pickled."""

SCOPE_SCHEMA = {
    "suite": dg.Field(str, description="Name of the suite."),
    "tasks": dg.Field([str], default_value=[], description="Only these tasks; empty: all."),
    "models": dg.Field([str], default_value=[], description="Only these models; empty: all."),
    "stages": dg.Field([str], default_value=[], description="Only these stages; empty: all."),
    "assets": dg.Field(
        [str],
        default_value=[],
        description="Only these assets, e.g. candidate_full_scores; empty: all but on request.",
    ),
    "force": dg.Field(bool, default_value=False, description="Run fresh partitions, too."),
    "retry": dg.Field(
        bool, default_value=True, description="Run partitions again that failed on the same inputs."
    ),
}


def materialize_job() -> dg.JobDefinition:
    """Return the job; its one op runs all assets."""
    op = _upkeep_op()

    @dg.job(
        name=JOB,
        description="Brings a suite up to date: runs what is missing or stale, nothing else.",
        executor_def=dg.in_process_executor,
    )
    def materialize() -> None:
        op()

    return materialize


def register_partitions(
    instance: dg.DagsterInstance, catalog: Catalog, bench: Workbench, in_turn: Collection[str] = ()
) -> None:
    """Make the dynamic partitions of the models of suites in use, and take back the others.

    Args:
        instance: knows the partitions.
        catalog: suites and models as they are now.
        bench: the home.
        in_turn: suites whose `registered_models` the caller runs itself.
    """
    in_use = {*suites_in_use(bench.warehouse, catalog), *in_turn}
    suites = [catalog.suites[name] for name in sorted(in_use)]
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
    record_registered_models(instance, catalog, bench, in_turn)


def _upkeep_op() -> dg.OpDefinition:
    @dg.op(
        name=OP,
        out=REPORT,
        config_schema=SCOPE_SCHEMA,
        required_resource_keys=set(RESOURCE_KEYS),
    )
    def upkeep(context: dg.OpExecutionContext) -> Iterator[dg.Output[dict[str, Any]]]:
        """Run what is stale of every asset of the scope, in flow order; publish once.

        The report is given before the op fails, so that the command line shows what ran.
        """
        context.instance.add_run_tags(context.run_id, process_tags())
        scope = scope_of(context.op_config)
        bench = workbench_of(context.resources)
        bench.ports.tasks.resolve(bench.catalog().suite(scope.suite))
        assets = wanted_assets(scope)
        in_turn = [scope.suite] if registered_models in assets else []
        register_partitions(context.instance, bench.catalog(), bench, in_turn)
        report: dict[str, Any] = {"assets": {}, "failed_checks": []}
        with _published(bench, report):
            for declaration in assets:
                _run_stale(context, declaration, scope, report)
        ran = [d for d in assets if report["assets"][d.name]["run"]]
        for declaration in ran:
            for evaluation in evaluate(declaration, bench.warehouse):
                context.log_event(evaluation)  # type: ignore[arg-type]  # accepted, not yet typed
                _note_failed(report, [evaluation])
        yield dg.Output(report)
        problems = [*report["failed_checks"], *failures_in(report)]
        if problems:
            raise dg.Failure(description="; ".join(problems[:5]), allow_retries=False)

    return upkeep


@contextmanager
def _published(bench: Workbench, report: Mapping[str, Any]) -> Iterator[None]:
    """Publish what ran, once and also after an error: readers see what a killed run stored."""
    with bench.warehouse.running():
        try:
            yield
        except BaseException:
            with suppress(Exception):
                bench.warehouse.publish()
            raise
    if any(entry["run"] for entry in report["assets"].values()):
        bench.warehouse.publish()


def _run_stale(
    context: dg.OpExecutionContext, declaration: Declaration, scope: Scope, report: dict[str, Any]
) -> None:
    """Run the stale partitions of one asset, and add what came of it to the report."""
    # One for each asset: it keeps models in memory, and which model a path is.
    bench = workbench_of(context.resources)
    catalog, force = bench.catalog(), context.op_config["force"]
    keys = _own_keys(context, declaration, scope, catalog)
    plan = plan_asset(
        declaration,
        keys,
        SettingsContext({}, catalog, bench.ports),
        _ledger_with_marks(bench, declaration, keys, entries_read(declaration, keys, catalog)),
        force=force,
        retry=context.op_config["retry"],
    )
    failed: dict[str, str] = {}
    report["assets"][declaration.name] = {
        "stage": declaration.stage, "run": plan.run, "fresh": plan.fresh,
        "blocked": plan.blocked, "reasons": plan.reasons, "failed": failed,
    }  # fmt: skip
    if not plan.run:
        return
    events = RunEvents(context.instance, context.log_event, declaration)
    head = f"== {declaration.stage} / {declaration.name}"
    with run_log(context) as log:
        log(f"{head}: {len(plan.run)} to run, {len(plan.fresh)} fresh")
        for done in run_partitions(
            declaration, plan.run, catalog, bench, run_id=context.run_id, force=force, log=log
        ):
            if done.status == "failed":
                failed[done.key] = done.reason
            if done.status != "fresh":
                events.log(done)
            _note_failed(report, evaluations_in(done))


def _ledger_with_marks(
    bench: Workbench,
    declaration: Declaration,
    keys: Sequence[str],
    wanted: Sequence[tuple[str, str]] | None,
) -> Ledger:
    """Return the ledger, where partitions of the asset that lost rows are noted as failed."""
    asked = set(keys)
    with bench.warehouse.session() as connection:
        ledger = read_ledger(connection, wanted)
        found = [d for d in lost_rows(connection, declaration) if d.key in asked]
        if not found:
            return ledger
        mark_damaged(connection, found)
        return read_ledger(connection, wanted)


def _own_keys(
    context: dg.OpExecutionContext, declaration: Declaration, scope: Scope, catalog: Catalog
) -> list[str]:
    """Return the partitions of an asset, without models that another run scores just now."""
    keys = scoped_keys(declaration, scope, catalog)
    if declaration.grain is not Grain.SUITE_CANDIDATE:
        return keys
    others = models_being_scored(context.instance, scope.suite, but=context.run_id)
    return [key for key in keys if columns_of(declaration.grain, key)["model"] not in others]


def _note_failed(report: dict[str, Any], evaluations: Iterable[AssetCheckEvaluation]) -> None:
    report["failed_checks"] += [
        f"{e.asset_key.to_user_string()}.{e.check_name}" for e in evaluations if not e.passed
    ]


def failures_in(report: Mapping[str, Any]) -> list[str]:
    """Return one line per failed partition of a report."""
    return [
        f"{name} {key}: {reason}"
        for name, entry in report["assets"].items()
        for key, reason in entry["failed"].items()
    ]
