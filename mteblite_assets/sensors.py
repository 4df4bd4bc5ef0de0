"""The checkpoint sensor: a finished checkpoint in the watched folder gets its lite scores."""

from typing import Any

import dagster as dg

from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.partitions import CANDIDATES, Partitions
from mteblite_assets.graph.watching import Arrival, arrivals
from mteblite_assets.suites.catalog import Catalog
from mteblite_resources.catalog_files import load_catalog, register_model
from mteblite_resources.home import Home
from mteblite_resources.warehouse import Warehouse

SECONDS = 10


def lite_scoring_job(partitions: Partitions) -> Any:
    """Return the job of one checkpoint: encode the selected texts, score, predict."""
    return dg.define_asset_job(
        "lite_scoring",
        selection=dg.AssetSelection.assets("lite_scores"),
        partitions_def=partitions.by_grain[Grain.SUITE_CANDIDATE],
        description="Lite scores of one candidate on one suite, from the selected items only.",
    )


def checkpoint_sensor(job: Any) -> dg.SensorDefinition:
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
        arrived, cursor, waiting = arrivals(
            folder, sorted(catalog.suites), _released(home), context.cursor or ""
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
        partitions = dg.DynamicPartitionsDefinition(name=CANDIDATES)
        return dg.SensorResult(
            run_requests=[_request(a) for a in found],
            dynamic_partitions_requests=[partitions.build_add_request(names)],
            cursor=cursor,
        )

    return checkpoints


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
