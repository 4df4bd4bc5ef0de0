"""Turns a declaration into the Dagster asset that the UI shows and runs."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg

from mteblite_assets.flow import declarations
from mteblite_assets.graph.declaration import Declaration
from mteblite_assets.graph.driver import Done, run_partitions
from mteblite_assets.graph.events import RunEvents, evaluate, metadata_of
from mteblite_assets.graph.partitions import Partitions
from mteblite_assets.graph.registered import record_registered_models
from mteblite_assets.graph.runs import process_tags
from mteblite_resources.resources import RESOURCE_KEYS, workbench_of

warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)

LOG_SECONDS = 1.0


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
    context.instance.add_run_tags(context.run_id, process_tags())
    bench = workbench_of(context.resources)
    events = RunEvents(context.instance, context.log_event, declaration)
    single = context.has_partition_key
    failures: list[Done] = []
    last: Done | None = None
    with bench.warehouse.running(), run_log(context) as log:
        for done in run_partitions(
            declaration, keys, bench.catalog(), bench, run_id=context.run_id, force=force, log=log
        ):
            if done.status == "failed" or (single and done.status == "not_applicable"):
                failures.append(done)
            elif single and not (done.produced and done.produced.nothing):
                last = done
            else:
                events.log(done)
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


@contextmanager
def run_log(context: Any) -> Iterator[Callable[[str], None]]:
    """Yield what writes to the run's log and, for the command line, to a plain logger.

    The run's log gets the lines of LOG_SECONDS as one message: Dagster stores each message in its
    database, which takes as long as storing a materialization.
    """
    progress = logging.getLogger("mteblite.progress")
    lines: list[str] = []
    last = 0.0

    def write() -> None:
        if lines:
            context.log.info("\n".join(lines))
            lines.clear()

    def log(text: str) -> None:
        nonlocal last
        progress.info(text)
        lines.append(text)
        if time.monotonic() - last >= LOG_SECONDS:
            write()
            last = time.monotonic()

    try:
        yield log
    finally:
        write()
