"""Turns a declaration into the Dagster asset that the UI shows and the daemon runs."""

import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg

from mteblite_assets.graph.automation import when_inputs_change
from mteblite_assets.graph.declaration import Check, Declaration, declarations
from mteblite_assets.graph.driver import Done, run_partitions
from mteblite_assets.graph.keys import gathers
from mteblite_assets.graph.partitions import Partitions
from mteblite_resources.resources import RESOURCE_KEYS, workbench_of
from mteblite_resources.workbench import Workbench

warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)


def build_asset(declaration: Declaration, partitions: Partitions) -> dg.AssetsDefinition:
    """Return the Dagster asset of a declaration."""
    upstream = [declarations()[d] for d in declaration.deps]
    tolerated = [u.name for u in upstream if gathers(u.grain, declaration.grain)]
    position = list(declarations()).index(declaration.name)

    @dg.asset(
        name=declaration.name,
        group_name=declaration.stage,
        description=declaration.description,
        kinds=set(declaration.kinds),
        code_version=declaration.code_version,
        partitions_def=partitions.by_grain[declaration.grain],
        deps=[
            dg.AssetDep(u.name, partition_mapping=partitions.mapping(u.grain, declaration.grain))
            for u in upstream
        ],
        check_specs=[
            dg.AssetCheckSpec(c.name, asset=declaration.name, description=c.description)
            for c in declaration.checks
        ],
        metadata={"tables": ", ".join(declaration.tables), "grain": declaration.grain.value},
        automation_condition=None if declaration.on_request else when_inputs_change(tolerated),
        # Assets with equal policies would be grouped into one run, where those that log
        # their materializations skip each other silently.
        backfill_policy=dg.BackfillPolicy.multi_run(100_000 + position),
        output_required=False,
        required_resource_keys=set(RESOURCE_KEYS),
        config_schema={
            "keys": dg.Field([str], default_value=[]),
            "force": dg.Field(bool, default_value=False),
        },
    )
    def stage_asset(context: dg.AssetExecutionContext) -> Iterator[Any]:
        yield from _execute(context, declaration)

    return stage_asset


def _execute(context: dg.AssetExecutionContext, declaration: Declaration) -> Iterator[Any]:
    bench = workbench_of(context.resources)
    config = context.op_execution_context.op_config
    keyed = context.has_partition_key or context.has_partition_key_range
    keys = list(context.partition_keys) if keyed else list(config["keys"])
    single = keys[0] if context.has_partition_key else None
    failures, last = [], None
    for done in run_partitions(
        declaration, keys, bench.catalog(), bench,
        run_id=context.run_id, force=config["force"], log=_logger(context),
    ):  # fmt: skip
        if done.status == "failed":
            failures.append(done)
            continue
        last = done
        if single is None and (keyed or done.status != "fresh"):
            _log_materialization(context, declaration, done, bench)
    bench.sync_models()
    bench.warehouse.publish()
    yield from (_evaluate(check, declaration, bench) for check in declaration.checks)
    if failures:
        raise dg.Failure(
            description="; ".join(f"{d.key}: {d.reason}" for d in failures[:5]),
            metadata={"failed": len(failures), "asked": len(keys)},
            allow_retries=False,
        )
    if single is not None and last is not None:
        yield dg.MaterializeResult(
            data_version=dg.DataVersion(last.data_version or last.status),
            metadata=_metadata(last),
        )


def _logger(context: dg.AssetExecutionContext) -> Callable[[str], None]:
    """Return what writes to the run's log and, for the command line, to a plain logger."""
    progress = logging.getLogger("mteblite.progress")

    def log(text: str) -> None:
        context.log.info(text)
        progress.info(text)

    return log


def _log_materialization(
    context: dg.AssetExecutionContext, declaration: Declaration, done: Done, bench: Workbench
) -> None:
    """Log a finished partition, with the provenance that Dagster's staleness needs."""
    tags = {
        "dagster/data_version": done.data_version or done.status,
        "dagster/code_version": declaration.code_version,
    }
    for dep, version in (done.need.inputs if done.need else {}).items():
        tags[f"dagster/input_data_version/{dep}"] = version
        pointer = _newest_event(context.instance, dep)
        if pointer:
            tags[f"dagster/input_event_pointer/{dep}"] = pointer
    context.log_event(
        dg.AssetMaterialization(
            declaration.name, partition=done.key, metadata=_metadata(done), tags=tags
        )
    )


def _newest_event(instance: dg.DagsterInstance, asset: str) -> str:
    records = instance.get_asset_records([dg.AssetKey(asset)])
    storage_id = records[0].asset_entry.last_materialization_storage_id if records else None
    return str(storage_id) if storage_id is not None else ""


def _metadata(done: Done) -> dict[str, Any]:
    facts: dict[str, Any] = {"rows": done.n_rows, "seconds": round(done.seconds, 3)}
    if done.status != "ok":
        return {"status": done.status}
    return facts | dict(done.produced.metadata if done.produced else {})


def _evaluate(check: Check, declaration: Declaration, bench: Workbench) -> dg.AssetCheckResult:
    violations = bench.warehouse.query(check.violations)
    sample = violations.head(5).to_markdown(index=False) if len(violations) else "none"
    return dg.AssetCheckResult(
        check_name=check.name,
        passed=violations.empty,
        metadata={"violations": len(violations), "first": dg.MetadataValue.md(sample)},
    )
