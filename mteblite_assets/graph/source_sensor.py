"""The sensor on the official results: a changed mirror or table is read again by the daemon."""

import json
from typing import Any

import dagster as dg

from mteblite_assets.flow import declarations
from mteblite_assets.graph.keys import SOURCES_INGESTED, Grain
from mteblite_assets.graph.partitions import Partitions
from mteblite_assets.graph.plan import require, why_stale
from mteblite_assets.graph.work import SettingsContext
from mteblite_resources.warehouse import read_ledger
from mteblite_resources.workbench import Workbench

SECONDS = 60
"""Between two looks: a mirror of 100,000 files takes a second of directory entries."""
ASSET = "official_results"
(SOURCE,) = SOURCES_INGESTED


def official_results_job(partitions: Partitions) -> Any:
    """Return the job that reads new and changed official results."""
    return dg.define_asset_job(
        "read_official_results",
        selection=dg.AssetSelection.assets(ASSET),
        partitions_def=partitions.by_grain[Grain.SOURCE],
        description="Reads new and changed official results; what follows is automatic.",
    )


def official_results_sensor(job: Any) -> dg.SensorDefinition:
    """Return the sensor on MTEBLITE_OFFICIAL_SCORES; it looks at directory entries alone.

    Results that have never been read are left to `mteblite materialize`. A folder counts as
    changed when two looks in a row see the same change, so that a mirror that is being copied
    is read once, not at every look.
    """

    @dg.sensor(
        name=ASSET,
        job=job,
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Notices new, changed and removed files of official results.",
    )
    def official_results(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        from mteblite_resources.resources import default_workbench

        bench = default_workbench()
        try:
            now = changed_state(bench)
        except (ValueError, OSError) as error:
            return dg.SkipReason(f"{error} (unmounted?); nothing is removed")
        before = json.loads(context.cursor or "{}")
        cursor = json.dumps({"seen": now, "asked": before.get("asked", "") if now else ""})
        if not now or now == before.get("asked") or now != before.get("seen"):
            context.update_cursor(cursor)
            return dg.SkipReason(_why_not(now, before))
        return dg.SensorResult(
            run_requests=[dg.RunRequest(partition_key=SOURCE)],
            cursor=json.dumps({"seen": now, "asked": now}),
        )

    return official_results


def changed_state(bench: Workbench) -> str:
    """Return a digest of the official results as they lie there; "" when they were read so.

    Raises:
        ValueError: nothing is at the place that is set.
        OSError: it cannot be listed.
    """
    with bench.warehouse.session() as connection:
        ledger = read_ledger(connection)
    entry = ledger.get((ASSET, SOURCE))
    sources = bench.ports.full_scores.sources
    # A daemon that was started without the setting must not empty what others have read.
    if entry is None or sources.location is None:
        return ""
    context = SettingsContext({"source": SOURCE}, bench.catalog(), bench.ports)
    need = require(declarations()[ASSET], context, SOURCE, ledger)
    return need.settings_hash if why_stale(entry, need) else ""


def _why_not(now: str, before: dict[str, str]) -> str:
    if not now:
        return "the official results are as they were read"
    if now == before.get("asked"):
        return "a run was asked for"
    return "the official results change; waiting until two looks see the same"
