"""The sensors: finished checkpoints get their lite scores, changed suite files are noticed."""

import json
from types import SimpleNamespace
from typing import Any

import dagster as dg

from mteblite_assets.graph.declaration import declarations
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.partitions import CANDIDATES, Partitions
from mteblite_assets.graph.plan import require, why_stale
from mteblite_assets.graph.upkeep import register_partitions
from mteblite_assets.graph.watching import Arrival, arrivals
from mteblite_assets.graph.work import SettingsContext
from mteblite_assets.suites.catalog import Catalog
from mteblite_resources.catalog_files import load_catalog, register_model
from mteblite_resources.home import Home
from mteblite_resources.warehouse import Warehouse, read_ledger
from mteblite_resources.workbench import Workbench

SECONDS = 10
SUITE_ROOTS = ("suite_tasks", "roster")
"""Assets that are made of files alone."""


def lite_scoring_job(partitions: Partitions) -> Any:
    """Return the job of one checkpoint: encode the selected texts, score, predict."""
    return dg.define_asset_job(
        "lite_scoring",
        selection=dg.AssetSelection.assets("lite_scores"),
        partitions_def=partitions.by_grain[Grain.SUITE_CANDIDATE],
        description="Lite scores of one candidate on one suite, from the selected items only.",
    )


def checkpoint_sensor(job: Any, partitions: Partitions) -> dg.SensorDefinition:
    """Return the sensor on MTEBLITE_CHECKPOINTS (default: `checkpoints` in the home folder)."""

    @dg.sensor(
        name="checkpoints",
        job=job,
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Registers each finished checkpoint as a candidate and scores it.",
    )
    def checkpoints(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        home = Home.from_environment()
        folder = home.checkpoints
        if not folder.is_dir():
            return dg.SkipReason(f"{folder} is not there (unmounted?); nothing is removed")
        catalog = load_catalog(home)
        # A suite whose file came or went since the definitions were loaded has no partition.
        scorable = set(catalog.suites) & set(partitions.catalog.suites)
        released = [suite for suite in _released(home) if suite in scorable]
        arrived, cursor, waiting = arrivals(
            folder, sorted(catalog.suites), released, context.cursor or ""
        )
        found = [a for a in arrived if not _name_is_taken(a, catalog)]
        for arrival in found:
            register_model(home, arrival.suite, arrival.as_model())
        waiting += [
            f"{a.name} (suite {a.suite} has another model of this name: rename the folder)"
            for a in arrived
            if a not in found
        ]
        if not found:
            context.update_cursor(cursor)
            return dg.SkipReason(
                f"not finished: {', '.join(waiting)}" if waiting else "nothing new"
            )
        names = sorted({a.name for a in found})
        candidates = dg.DynamicPartitionsDefinition(name=CANDIDATES)
        return dg.SensorResult(
            run_requests=[_request(a) for a in found],
            dynamic_partitions_requests=[candidates.build_add_request(names)],
            cursor=cursor,
        )

    return checkpoints


def suite_files_job(partitions: Partitions) -> Any:
    """Return the job that brings a suite's tasks and members up to date."""
    return dg.define_asset_job(
        "suite_files",
        selection=dg.AssetSelection.assets(*SUITE_ROOTS),
        partitions_def=partitions.by_grain[Grain.SUITE],
        description="Reads a suite's file and registered models again; what follows is automatic.",
    )


def suite_files_sensor(job: Any, partitions: Partitions) -> dg.SensorDefinition:
    """Return the sensor on suite files and registered models.

    What stands in files is no asset, so the daemon cannot see it change. Only suites that
    somebody has built are looked at; a new suite starts with `mteblite materialize`.
    """

    @dg.sensor(
        name="suite_files",
        job=job,
        minimum_interval_seconds=3 * SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Notices changed suite files and added or removed reference models.",
    )
    def suite_files(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        from mteblite_resources.resources import default_resources, workbench_of

        bench = workbench_of(SimpleNamespace(**default_resources()))
        register_partitions(context.instance, bench.catalog(), bench)
        asked = json.loads(context.cursor or "{}")
        loaded = partitions.catalog.suites
        changed = {s: state for s, state in changed_suites(bench).items() if s in loaded}
        # The cursor, not a run key: going back to an earlier file is a change, too.
        new = [suite for suite, state in changed.items() if asked.get(suite) != state]
        if not new:
            context.update_cursor(json.dumps(changed))
            return dg.SkipReason("no suite that has been built changed")
        return dg.SensorResult(
            run_requests=[dg.RunRequest(partition_key=suite) for suite in new],
            cursor=json.dumps(changed),
        )

    return suite_files


def changed_suites(bench: Workbench) -> dict[str, str]:
    """Return suites that have been built and whose file or members differ now, with a digest."""
    with bench.warehouse.session() as connection:
        ledger = read_ledger(connection)
    catalog = bench.catalog()
    changed: dict[str, str] = {}
    for suite in sorted(catalog.suites):
        context = SettingsContext({"suite": suite}, catalog, bench)
        needs = [require(declarations()[name], context, suite, ledger) for name in SUITE_ROOTS]
        entries = [ledger.get((name, suite)) for name in SUITE_ROOTS]
        built = all(entry is not None for entry in entries)
        if built and any(why_stale(e, n) for e, n in zip(entries, needs, strict=True)):
            changed[suite] = "-".join(n.settings_hash for n in needs)
    return changed


def _name_is_taken(arrival: Arrival, catalog: Catalog) -> bool:
    """Whether the suite has a model of this name that is not this folder; it must not be lost."""
    if arrival.suite not in catalog.suites:
        return False
    known = {m.name: m.path for m in catalog.suites[arrival.suite].models}
    return arrival.name in known and known[arrival.name] != arrival.path


def _request(arrival: Arrival) -> dg.RunRequest:
    return dg.RunRequest(
        # The same files are scored once; a checkpoint overwritten in place is a new request.
        run_key=f"{arrival.suite} {arrival.name} {arrival.fingerprint}",
        partition_key=dg.MultiPartitionKey({"suite": arrival.suite, "candidate": arrival.name}),
        tags={"mteblite/checkpoint": arrival.name},
    )


def _released(home: Home) -> list[str]:
    """Suites that have a lite suite to score on."""
    try:
        rows = Warehouse(home.writer, home.snapshot).query(
            "SELECT DISTINCT suite FROM lite_scores.lite_suites ORDER BY suite"
        )
    except FileNotFoundError:
        return []
    return list(rows["suite"])
