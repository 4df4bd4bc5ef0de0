"""Turns a declaration into the Dagster asset that the UI shows and runs."""

import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg

from mteblite_assets.flow import declarations
from mteblite_assets.graph.declaration import Declaration
from mteblite_assets.graph.driver import Done, run_partitions
from mteblite_assets.graph.events import evaluate, log_done, metadata_of
from mteblite_assets.graph.partitions import Partitions
from mteblite_assets.graph.registered import record_registered_models
from mteblite_resources.resources import RESOURCE_KEYS, workbench_of

warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)


def build_asset(declaration: Declaration, partitions: Partitions) -> dg.AssetsDefinition:
    """Return the Dagster asset of a declaration."""
    upstream = [declarations()[d] for d in declaration.deps]
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
        # No automation condition: the sensor `upkeep` alone decides what runs.
        # Assets with equal policies would be grouped into one run, where those that log
        # their materializations skip each other silently. Roots run partition by partition.
        backfill_policy=dg.BackfillPolicy.multi_run(100_000 + position if upstream else 1),
        output_required=False,
        required_resource_keys=set(RESOURCE_KEYS),
        config_schema={"force": dg.Field(bool, default_value=False)},
    )
    def stage_asset(context: dg.AssetExecutionContext) -> Iterator[Any]:
        force = context.op_execution_context.op_config["force"]
        yield from run_asset(context, declaration, list(context.partition_keys), force=force)

    return stage_asset


def run_asset(
    context: dg.AssetExecutionContext, declaration: Declaration, keys: list[str], *, force: bool
) -> Iterator[Any]:
    """Run the partitions of a run of the UI.

    Args:
        context: of the run.
        declaration: the asset.
        keys: its partitions.
        force: run partitions that are current, too.

    Raises:
        dg.Failure: partitions failed (the others are stored), or no suite asks for the one that
            the run is for.
    """
    bench = workbench_of(context.resources)
    single = context.has_partition_key
    failures: list[Done] = []
    last: Done | None = None
    with bench.warehouse.running():
        for done in run_partitions(
            declaration, keys, bench.catalog(), bench,
            run_id=context.run_id, force=force, log=progress_log(context),
        ):  # fmt: skip
            if done.status == "failed" or (single and done.status == "not_applicable"):
                failures.append(done)
            elif single and not (done.produced and done.produced.nothing):
                last = done
            else:
                log_done(context.instance, context.log_event, declaration, done)
    record_registered_models(context.instance, bench.catalog(), bench)
    bench.warehouse.publish()
    for found in evaluate(declaration, bench.warehouse):
        yield dg.AssetCheckResult(
            check_name=found.check_name, passed=found.passed, metadata=found.metadata
        )
    if failures:
        raise failure_of(failures)
    if last is not None:
        version = dg.DataVersion(last.data_version or last.status)
        yield dg.MaterializeResult(data_version=version, metadata=metadata_of(last))


def failure_of(failures: list[Done]) -> dg.Failure:
    """Return the failure of a run some of whose partitions failed; the others are stored."""
    return dg.Failure(
        description="; ".join(f"{d.key}: {d.reason}" for d in failures[:5]),
        metadata={"failed partitions": len(failures)},
        allow_retries=False,
    )


def progress_log(context: Any) -> Callable[[str], None]:
    """Return what writes to the run's log and, for the command line, to a plain logger."""
    progress = logging.getLogger("mteblite.progress")

    def log(text: str) -> None:
        context.log.info(text)
        progress.info(text)

    return log
