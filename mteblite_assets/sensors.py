"""The sensor of a home: finished checkpoints are registered, and what is stale is run."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg

from mteblite.suites.catalog import Catalog
from mteblite_assets.graph.damage import counted_ledger
from mteblite_assets.graph.judge import Request, Verdict, judge
from mteblite_assets.graph.requirements import Ledger
from mteblite_assets.graph.runs import KIND, PLAN, fail_dead_runs, scope_config
from mteblite_assets.graph.watching import Arrival, Look, look_at
from mteblite_resources.catalog_files import register_model
from mteblite_resources.database.duckdb_files import database_state
from mteblite_resources.home import Home
from mteblite_resources.resources import default_workbench
from mteblite_resources.workbench import Workbench

SECONDS = 10
PLAN_SECONDS = 60
"""The plan is asked at least so often: models, own data and official results are other files."""
PRIORITY = {"scores": "10", "upkeep": "0"}


@dataclass
class _Cursor:
    """What one look leaves to the next.

    Attributes:
        checkpoints: of the watched folder, see `watching`.
        stale: of the suites in use, see `judge`.
        stamp: of the files that say what is asked for and what is made; "" while anything is stale.
        planned: time of the last plan, in seconds.
        untold: refusals of a look that started a run; such a tick shows no message.
    """

    checkpoints: dict[str, dict[str, str]] = field(default_factory=dict)
    stale: dict[str, str] = field(default_factory=dict)
    stamp: str = ""
    planned: float = 0.0
    untold: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> _Cursor:
        """Read the cursor; one of an earlier version counts as none."""
        try:
            return cls(**json.loads(text or "{}"))
        except TypeError:
            return cls()


def upkeep_sensor(job: Any) -> dg.SensorDefinition:
    """Return the sensor of the home; it starts runs of the `materialize` job."""

    @dg.sensor(
        name="upkeep",
        job=job,
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Registers finished checkpoints and runs what `mteblite plan` names, for "
        "suites that were materialized once.",
    )
    def upkeep(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        bench = default_workbench()
        cursor = _Cursor.parse(context.cursor)
        look = _look(bench, cursor)
        cursor.checkpoints = look.cursor
        stamp, now = _stamp(bench.home), time.time()
        recent = 0 <= now - cursor.planned < PLAN_SECONDS
        if recent and stamp == cursor.stamp and not look.arrived:
            verdict = Verdict([], {}, [])
        else:
            verdict = _verdict(bench, context.instance, look, cursor)
            cursor.stale, cursor.planned = verdict.stale, now
            cursor.stamp = "" if verdict.stale else stamp
        look.refused = {**cursor.untold, **look.refused}
        cursor.untold = look.refused if verdict.requests else {}
        message = _message(look, verdict)
        context.log.info(message)
        text = json.dumps(asdict(cursor))
        if not verdict.requests:
            context.update_cursor(text)
            return dg.SkipReason(message)
        return dg.SensorResult(
            run_requests=[_run_request(r) for r in verdict.requests],
            cursor=text,
        )

    return upkeep


def _look(bench: Workbench, cursor: _Cursor) -> Look:
    """Look at the watched folder and register what has arrived."""
    folder, catalog = bench.home.checkpoints, bench.catalog()
    if not folder.is_dir():
        waiting = {str(folder): "is not there (unmounted?); nothing is removed"}
        return Look(waiting=waiting, cursor=cursor.checkpoints)
    released = [suite for suite in _lite_suites(bench) if suite in catalog.suites]
    look = look_at(
        folder,
        sorted(catalog.suites),
        released,
        cursor.checkpoints,
        lambda arrival: _why_refused(arrival, catalog, bench),
    )
    for arrival in look.arrived:
        register_model(bench.home, arrival.suite, arrival.as_model())
    return look


def _why_refused(arrival: Arrival, catalog: Catalog, bench: Workbench) -> str:
    """Return why a checkpoint cannot be scored, or ""."""
    known = {m.name: m.path for m in catalog.suite(arrival.suite).models}
    if arrival.name in known and known[arrival.name] != arrival.path:
        return f"suite {arrival.suite} has another model of this name: rename the folder"
    try:
        bench.ports.models.identify(arrival.as_model())
    except (ValueError, OSError) as error:
        return str(error)
    return ""


def _verdict(
    bench: Workbench, instance: dg.DagsterInstance, look: Look, cursor: _Cursor
) -> Verdict:
    fail_dead_runs(instance)
    ledger: Ledger = {}
    if not bench.warehouse.is_new():
        with bench.warehouse.session() as connection:
            ledger = counted_ledger(connection)
    arrived = {(a.suite, a.name) for a in look.arrived}
    return judge(bench, ledger, instance, arrived=arrived, before=cursor.stale)


def _stamp(home: Home) -> str:
    """Return a digest of suite files, registered models, frozen tasks and the warehouse's files."""
    places = [home.suites, home.models, home.resolved]
    files = sorted(_state(p) for place in places for p in place.rglob("*") if p.is_file())
    text = json.dumps([files, database_state(home.writer)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _state(file: Path) -> list[str | int]:
    try:
        stat = file.stat()
    except OSError:
        return [str(file)]
    return [str(file), stat.st_size, stat.st_mtime_ns]


def _message(look: Look, verdict: Verdict) -> str:
    """Return what the tick says."""
    parts = [
        *(f"{r.kind} of suite {r.scope.suite} starts" for r in verdict.requests),
        *(f"{name} is refused: {why}" for name, why in look.refused.items()),
        *(f"{name} waits: {why}" for name, why in look.waiting.items()),
        *verdict.notes,
    ]
    if not verdict.requests and verdict.stale:
        parts.append(f"suites {', '.join(verdict.stale)} are stale; a run starts when two looks "
                     "see the same files")  # fmt: skip
    return "; ".join(parts) or "nothing is stale"


def _run_request(request: Request) -> dg.RunRequest:
    return dg.RunRequest(
        run_config=scope_config(request.scope, retry=False),
        tags={
            KIND: request.kind,
            PLAN: request.digest,
            "mteblite/suite": request.scope.suite,
            "dagster/priority": PRIORITY[request.kind],
        },
    )


def _lite_suites(bench: Workbench) -> list[str]:
    try:
        rows = bench.warehouse.query(
            "SELECT DISTINCT suite FROM lite_scores.lite_suites ORDER BY suite"
        )
    except FileNotFoundError:
        return []
    return list(rows["suite"])
