"""The sensors: finished checkpoints are scored, and changed suite files start runs."""

import json
from dataclasses import dataclass
from typing import Any

import dagster as dg

from mteblite.suites.catalog import Catalog
from mteblite_assets.flow import declarations
from mteblite_assets.graph.keys import Grain, Scope, columns_of
from mteblite_assets.graph.partitions import CANDIDATES, Partitions
from mteblite_assets.graph.plan import Ledger, require, scoped_keys, why_stale
from mteblite_assets.graph.upkeep import JOB, register_partitions, scope_config
from mteblite_assets.graph.watching import Arrival, arrivals
from mteblite_assets.graph.work import SettingsContext
from mteblite_resources.catalog_files import load_catalog, register_model
from mteblite_resources.home import Home
from mteblite_resources.warehouse import Warehouse, read_ledger
from mteblite_resources.workbench import Workbench

SECONDS = 10
SUITE_ROOTS = ("suite_tasks", "roster")
"""Assets without inputs other than files."""


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
        # A suite that was added or removed after the definitions were loaded has no partition.
        known = set(catalog.suites) & set(partitions.catalog.suites)
        scorable = [suite for suite in _lite_suites(home) if suite in known]
        arrived, cursor, waiting = arrivals(
            folder, sorted(catalog.suites), scorable, context.cursor or ""
        )
        found = [a for a in arrived if not _name_is_taken(a, catalog)]
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
        return _scoring_of(found, home, cursor)

    return checkpoints


def suite_files_job(partitions: Partitions) -> Any:
    """Return the job that brings a suite's tasks and members up to date."""
    return dg.define_asset_job(
        "suite_files",
        selection=dg.AssetSelection.assets(*SUITE_ROOTS),
        partitions_def=partitions.by_grain[Grain.SUITE],
        description="Reads a suite's file and registered models again; later assets follow.",
    )


def suite_files_sensor(job: Any, upkeep: Any, partitions: Partitions) -> dg.SensorDefinition:
    """Return the sensor on suite files and registered models.

    Files are not assets, so the daemon does not see their changes. Only suites that have been
    built are compared; a new suite starts with `mteblite materialize`.

    Args:
        job: brings tasks and members up to date, suite by suite.
        upkeep: the `materialize` job, for stages whose methods changed.
        partitions: those of the loaded definitions.
    """

    @dg.sensor(
        name="suite_files",
        jobs=[job, upkeep],
        minimum_interval_seconds=3 * SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Finds changed suite files and added or removed reference models.",
    )
    def suite_files(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        from mteblite_resources.resources import default_workbench

        bench = default_workbench()
        register_partitions(context.instance, bench.catalog(), bench)
        asked = json.loads(context.cursor or "{}")
        loaded = partitions.catalog.suites
        changed = {s: state for s, state in changed_suites(bench).items() if s in loaded}
        digests = {suite: state.digest for suite, state in changed.items()}
        # A cursor instead of a run key, because a return to an earlier file is also a change.
        new = [suite for suite, digest in digests.items() if asked.get(suite) != digest]
        if not new:
            context.update_cursor(json.dumps(digests))
            return dg.SkipReason("no suite that has been built changed")
        return dg.SensorResult(
            run_requests=[
                request for suite in new for request in _requests_of(suite, changed[suite], job)
            ],
            cursor=json.dumps(digests),
        )

    return suite_files


@dataclass(frozen=True)
class Changed:
    """A suite whose file or members differ from the built ones.

    Attributes:
        digest: hash of the present settings.
        roots: whether tasks or members must be read again.
        stages: stages whose methods changed, in flow order.
    """

    digest: str
    roots: bool
    stages: tuple[str, ...]


def changed_suites(bench: Workbench) -> dict[str, Changed]:
    """Return built suites whose file or members have changed."""
    with bench.warehouse.session() as connection:
        ledger = read_ledger(connection)
    catalog = bench.catalog()
    changed: dict[str, Changed] = {}
    for suite in sorted(catalog.suites):
        context = SettingsContext({"suite": suite}, catalog, bench.ports)
        needs = [require(declarations()[name], context, suite, ledger) for name in SUITE_ROOTS]
        entries = [ledger.get((name, suite)) for name in SUITE_ROOTS]
        if any(entry is None for entry in entries):
            continue
        roots = any(why_stale(e, n) for e, n in zip(entries, needs, strict=True))
        hashes, stages = _changed_methods(suite, catalog, bench, ledger)
        if roots or stages:
            digest = "-".join([*(n.settings_hash for n in needs), *hashes])
            changed[suite] = Changed(digest, roots, stages)
    return changed


def _changed_methods(
    suite: str, catalog: Catalog, bench: Workbench, ledger: Ledger
) -> tuple[list[str], tuple[str, ...]]:
    """Return the present settings of assets built with others, and the stages of these assets."""
    hashes, stages = [], []
    for declaration in declarations().values():
        of_suite = declaration.grain in (Grain.SUITE, Grain.SUITE_TASK)
        if not of_suite or declaration.settings is None or declaration.name in SUITE_ROOTS:
            continue
        for key in scoped_keys(declaration, Scope(suite), catalog):
            entry = ledger.get((declaration.name, key))
            if entry is None or entry["status"] != "ok":
                continue
            context = SettingsContext(columns_of(declaration.grain, key), catalog, bench.ports)
            now = require(declaration, context, key, ledger).settings_hash
            if now != entry["settings_hash"]:
                hashes.append(now)
                stages.append(declaration.stage)
    return hashes, tuple(dict.fromkeys(stages))


def _requests_of(suite: str, state: Changed, job: Any) -> list[dg.RunRequest]:
    """Return the runs of a changed suite; later assets follow automatically."""
    requests = []
    if state.roots:
        requests.append(dg.RunRequest(partition_key=suite, job_name=job.name))
    if state.stages:
        config = scope_config(Scope(suite, stages=state.stages), force=False, on_request=[])
        requests.append(dg.RunRequest(job_name=JOB, run_config=config))
    return requests


def _name_is_taken(arrival: Arrival, catalog: Catalog) -> bool:
    """Return whether a model of this name from another place would be replaced."""
    if arrival.suite not in catalog.suites:
        return False
    known = {m.name: m.path for m in catalog.suites[arrival.suite].models}
    return arrival.name in known and known[arrival.name] != arrival.path


def _scoring_of(found: list[Arrival], home: Home, cursor: str) -> dg.SensorResult:
    """Register checkpoints as candidates and ask for their scores."""
    for arrival in found:
        register_model(home, arrival.suite, arrival.as_model())
    names = sorted({a.name for a in found})
    candidates = dg.DynamicPartitionsDefinition(name=CANDIDATES)
    return dg.SensorResult(
        run_requests=[_request(a) for a in found],
        dynamic_partitions_requests=[candidates.build_add_request(names)],
        cursor=cursor,
    )


def _request(arrival: Arrival) -> dg.RunRequest:
    return dg.RunRequest(
        # The same files are scored once; a checkpoint overwritten in place is a new request.
        run_key=f"{arrival.suite} {arrival.name} {arrival.fingerprint}",
        partition_key=dg.MultiPartitionKey({"suite": arrival.suite, "candidate": arrival.name}),
        tags={"mteblite/checkpoint": arrival.name},
    )


def _lite_suites(home: Home) -> list[str]:
    try:
        rows = Warehouse(home.writer, home.snapshot).query(
            "SELECT DISTINCT suite FROM lite_scores.lite_suites ORDER BY suite"
        )
    except FileNotFoundError:
        return []
    return list(rows["suite"])
