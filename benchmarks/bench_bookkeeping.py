"""What bookkeeping costs as a home grows: status, plan, a partition, an idle look, publishing.

Makes homes with a suite of own tasks and local models, and a ledger in which every partition is
fresh, without computing anything. Each home is measured by the commands and by one forced run.

    python benchmarks/bench_bookkeeping.py --sizes 9x10,57x100,100x550 --outcomes 0
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from measuring import REPOSITORY, arguments, report

sys.path.insert(0, str(REPOSITORY / "tests"))
from support import tiny_suite

from mteblite_resources.warehouse import replace_partition

SUITE = "large"
COMMAND = [sys.executable, "-c", "from mteblite_assets.cli.main import main; main()", "--quiet"]
FORCED = "resolved_tasks"


def main() -> None:
    """Print a row per home."""
    asked = arguments(__doc__, sizes="9x10,57x100", outcomes=0)
    rows = []
    for size in asked.sizes.split(","):
        tasks, models = (int(number) for number in size.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            rows.append(_measured(Path(folder), tasks, models, asked.outcomes))
    for row in rows:
        for name in ("status s", "plan s", "partition ms", "idle look ms"):
            row[f"{name.rsplit(' ', 1)[0]} / smallest"] = row[name] / rows[0][name]
    report("Bookkeeping", rows, as_json=asked.json)


def _measured(root: Path, tasks: int, models: int, outcomes: int) -> dict[str, Any]:
    home = root / "home"
    os.environ |= {"MTEBLITE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}
    _write(root, tasks, models)
    filled = _fill(home)
    row = {"tasks": tasks, "models": models, "ledger rows": filled}
    row["status s"] = _command("status", "--suite", SUITE)
    row["plan s"] = _command("plan", "--suite", SUITE)
    row["partition ms"] = _partition(tasks)
    row["idle look ms"] = _idle_look()
    row |= _publish(outcomes)
    return row


def _write(root: Path, tasks: int, models: int) -> None:
    """Write a suite of STS tasks with equal data and of models that differ in a setting alone."""
    first = tiny_suite.write_model(root / "models" / "m0", "m", 1.0)
    for number in range(1, models):
        folder = root / "models" / f"m{number}"
        shutil.copytree(first, folder)
        (folder / "number.json").write_text(str(number))
    tiny_suite.write_data(root / "data")
    document = {
        "name": SUITE, "k": 5, "preset": None, "reference_scores": ["run"],
        "pool": {"max_items": 40},
        "tasks": [{"task": f"T{n}", "type": "STS", "path": "data/TinySTS"} for n in range(tasks)],
        "models": [{"name": f"m{n}", "family": f"f{n}", "path": f"models/m{n}"}
                   for n in range(models)],
    }  # fmt: skip
    (root / "home" / "suites").mkdir(parents=True)
    (root / "home" / "suites" / f"{SUITE}.yaml").write_text(yaml.safe_dump(document))


def _fill(home: Path) -> int:
    """Write a ledger in which every partition of the suite is fresh; return its length."""
    from mteblite_assets.cli.session import Session
    from mteblite_assets.graph.keys import Scope, columns_of
    from mteblite_assets.graph.plan import scoped_keys, wanted_assets
    from mteblite_assets.graph.requirements import require
    from mteblite_assets.graph.work import SettingsContext

    session = Session()
    session.resolve(SUITE)
    catalog, ledger, now = session.catalog, {}, datetime.now(UTC).replace(tzinfo=None)
    rows = []
    for declaration in wanted_assets(Scope(SUITE)):
        for key in scoped_keys(declaration, Scope(SUITE), catalog):
            context = SettingsContext(
                columns_of(declaration.grain, key), catalog, session.bench.ports
            )
            need = require(declaration, context, key, ledger)
            entry = {
                "status": "ok", "data_version": f"{hash(key):x}", "code_version": need.code_version,
                "settings_hash": need.settings_hash, "inputs": json.dumps(dict(need.inputs)),
                "reason": None, "n_rows": 0, "seconds": 0.0, "run_id": "filled", "updated_at": now,
            }  # fmt: skip
            rows.append({"asset": declaration.name, "partition_key": key, **entry})
            ledger[declaration.name, key] = entry | {"inputs": dict(need.inputs)}
    frame = pd.DataFrame(rows)
    with session.bench.warehouse.session() as connection:
        connection.register("_filled", frame)
        connection.execute("INSERT INTO ledger.partitions BY NAME SELECT * FROM _filled")
    session.register_partitions()
    session.bench.warehouse.publish()
    return len(frame)


def _command(*words: str) -> float:
    started = time.perf_counter()
    subprocess.run([*COMMAND, *words], check=True, capture_output=True)
    return time.perf_counter() - started


def _partition(tasks: int) -> float:
    """Return milliseconds of one more partition of a forced run: driver, rows, ledger, event."""
    from mteblite_assets.cli.session import Session
    from mteblite_assets.graph.keys import Scope
    from mteblite_assets.graph.runs import scope_config

    taken = []
    for scope in (Scope(SUITE, tasks=("T0",), assets=(FORCED,)), Scope(SUITE, assets=(FORCED,))):
        session = Session()
        _ = session.definitions, session.instance
        started = time.perf_counter()
        assert session.execute_job(scope_config(scope, force=True), {}).success
        taken.append(time.perf_counter() - started)
    return 1000 * (taken[1] - taken[0]) / (tasks - 1)


def _idle_look() -> float:
    """Return milliseconds of the second look of the daemon, which finds nothing changed."""
    import dagster as dg

    from mteblite_assets.cli.session import Session

    session, cursor, taken = Session(), "", []
    sensor = session.definitions.resolve_sensor_def("upkeep")
    for _ in range(4):
        context = dg.build_sensor_context(
            instance=session.instance, cursor=cursor, definitions=session.definitions
        )
        started = time.perf_counter()
        cursor = sensor.evaluate_tick(context).cursor or ""
        taken.append(time.perf_counter() - started)
    return 1000 * min(taken[1:])


def _publish(outcomes: int) -> dict[str, float]:
    """Return what publishing a warehouse with so many outcomes takes, one partition changed."""
    from mteblite_assets.cli.session import Session

    warehouse = Session().bench.warehouse
    with warehouse.session() as connection:
        connection.execute(
            "INSERT INTO outcomes.shared_item_outcomes BY NAME "
            "SELECT 'T' || (i % 100) AS pool_task, 'm' || (i % 2003) AS model, "
            "'i' || i AS item_id, random() AS outcome FROM range(?) r(i)",
            [outcomes],
        )
    warehouse.publish()
    changed = pd.DataFrame({"item_id": [f"i{n}" for n in range(1000)], "outcome": 0.5})
    with warehouse.session() as connection:
        key = {"pool_task": "T0", "model": "m0"}
        replace_partition(connection, "outcomes.shared_item_outcomes", key, changed)
    clock, cpu = time.perf_counter(), time.process_time()
    warehouse.publish()
    return {
        "publish s": time.perf_counter() - clock,
        "publish CPU s": time.process_time() - cpu,
        "snapshot MB": warehouse.snapshot.stat().st_size / 1e6,
    }


if __name__ == "__main__":
    main()
