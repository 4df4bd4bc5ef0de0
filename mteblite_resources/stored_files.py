"""What a home stores in files: which are damaged, which nothing names, and what mends them."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb

from mteblite.pools.pool import Pool
from mteblite.releases.release_files import read_release
from mteblite.vectors.shards import open_shard
from mteblite.vectors.store import drop_shard
from mteblite_resources.catalog_files import read_record
from mteblite_resources.database.duckdb_files import log_of
from mteblite_resources.database.publication import scratch_files
from mteblite_resources.home import Home
from mteblite_resources.official_results import forget_results, stored_problem
from mteblite_resources.warehouse import Warehouse


@dataclass(frozen=True)
class Finding:
    """Something that a home stores, and how it is.

    Attributes:
        what: its name.
        state: `good`, or what is wrong with it.
        todo: how to mend it; "" where it is good.
        mend: mends it without computing and says what it did; None where nothing can.
        asset: with `key`, the partition that made it, which is to be made again.
        key: see `asset`.
    """

    what: str
    state: str
    todo: str = ""
    mend: Callable[[], str] | None = None
    asset: str = ""
    key: str = ""


_ARRAY = "regexp_full_match(observations, '[0-9a-f]{32}[.]npy')"
"""Names that a file of observations can have; no other place is looked at, or removed."""
REPAIR = "`mteblite home check --repair`"


def check_pools(home: Home, connection: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    """Compare each pool with its hash; pools that nothing names are left over."""
    named = connection.execute(
        "SELECT pool_task, pool_hash FROM pools.shared_pool_stats "
        "WHERE regexp_full_match(pool_hash, '[0-9a-f]{16}') ORDER BY ALL"
    ).fetchall()
    places = {home.pools / task.replace("/", ".") / name: task for task, name in named}
    wrong = 0
    for place, task in places.items():
        problem = _pool_problem(place)
        if problem:
            wrong += 1
            todo = f"{REPAIR} removes it; the next `mteblite materialize` makes it again"
            yield Finding(f"pool {place}", problem, todo, _removal(place), "pool_items", task)
    yield Finding(f"{len(places) - wrong} pools", "good")
    yield from _left_over("pool", [p for p in home.pools.glob("*/*") if p not in places])


def check_observations(home: Home, connection: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    """Compare each array of observations with its hash; what nothing names is left over."""
    named = connection.execute(
        "SELECT observations, pool_task, model FROM outcomes.shared_pool_scores "
        f"WHERE {_ARRAY} ORDER BY ALL"
    ).fetchall()
    wrong = set()
    for name, task, model in named:
        path = home.observations / name
        problem = _array_problem(path)
        if problem:
            wrong.add(name)
            todo = f"{REPAIR} removes it; the next `mteblite materialize` makes it again"
            yield Finding(
                f"observations {path}", problem, todo, _removal(path), "item_outcomes",
                f"{model}|{task}",
            )  # fmt: skip
    files = {name for name, *_ in named}
    yield Finding(f"{len(files - wrong)} observations", "good")
    kept = connection.execute(
        f"SELECT DISTINCT observations FROM outcomes.outcome_matrix WHERE {_ARRAY}"
    ).fetchall()
    files |= {name for (name,) in kept}
    yield from _left_over(
        "observations", [p for p in home.observations.glob("*") if p.name not in files]
    )


def check_vectors(home: Home) -> Iterator[Finding]:
    """Compare each shard of vectors with its hash."""
    good = 0
    for path in sorted(home.vectors.glob("*/*/*.npy")):
        try:
            open_shard(path)
            good += 1
        except ValueError as error:
            todo = f"{REPAIR} drops it; its texts are encoded again when they are needed"
            yield Finding(f"vectors {path}", str(error), todo, _shard_removal(path))
    yield Finding(f"{good} shards of vectors", "good")


def check_releases(home: Home) -> Iterator[Finding]:
    """Read each exported release as who scores with it does."""
    good = 0
    for folder in sorted(p for p in home.exports.glob("*/*") if p.is_dir()):
        if folder.name.startswith("."):
            yield from _left_over("scratch folder", [folder])
            continue
        try:
            read_release(folder)
            good += 1
        except ValueError as error:
            todo = (
                f"delete it; `mteblite export --suite {folder.parent.name}` writes the release "
                "again where the lite suite is still the one that it was made from"
            )
            yield Finding(f"release {folder}", str(error), todo)
    yield Finding(f"{good} releases", "good")


def check_official(warehouse: Warehouse, location: Path | None) -> Iterator[Finding]:
    """Compare the rows of official results with what was noted when they were read.

    Args:
        warehouse: holds them.
        location: where they can be read again; None = that is not known.
    """
    with warehouse.session() as connection:
        problem = stored_problem(connection)
    if not problem:
        yield Finding("official results", "good")
    elif location is None:
        todo = "let MTEBLITE_OFFICIAL_SCORES name where they were read, then check again"
        yield Finding("official results", problem, todo)
    else:
        todo = f"{REPAIR} empties them; the next `mteblite materialize` reads them again"
        yield Finding(
            "official results", problem, todo, _forgetting(warehouse), "official_results",
            "official",
        )  # fmt: skip


def check_scratch(home: Home) -> Iterator[Finding]:
    """Find what killed runs and clients left beside the warehouse."""
    places = [p for f in (home.snapshot, home.writer) for p in scratch_files(f)]
    yield from _left_over("scratch file", places)
    log = log_of(home.snapshot)
    if log.exists():
        yield Finding(
            f"log {log}", "a client wrote into the snapshot",
            f"{REPAIR} removes it; open the snapshot read-only", _removal(log),
        )  # fmt: skip


def check_dagster(home: Home) -> Iterator[Finding]:
    """Open each database of Dagster, check its pages and count its events."""
    events = 0
    for path in sorted(home.dagster.rglob("*.db")):
        try:
            events += _events_in(path)
        except sqlite3.DatabaseError as error:
            todo = f"stop `mteblite dev`; {REPAIR} moves it away, and Dagster begins a new one"
            yield Finding(f"Dagster's records {path}", str(error), todo, _moving_away(path))
    yield Finding(f"Dagster's records, {events} events", "good")


def check_records(home: Home) -> Iterator[Finding]:
    """Read the files of registered models and of frozen tasks."""
    good = 0
    for path in sorted(home.models.glob("*/*.json")):
        try:
            read_record(path)
            good += 1
        except ValueError as error:
            yield Finding(f"model {path}", str(error), "do what its state says")
    for path in sorted(home.resolved.rglob("*.json")):
        try:
            json.loads(path.read_text(encoding="utf-8"))
            good += 1
        except ValueError as error:
            todo = f"{REPAIR} removes it; the next command freezes its tasks again"
            yield Finding(f"frozen tasks {path}", f"no JSON: {error}", todo, _removal(path))
    yield Finding(f"{good} models and frozen tasks", "good")


def _pool_problem(place: Path) -> str:
    try:
        found = Pool.load(place).pool_hash()
    except Exception as error:  # whatever a damaged Parquet or JSON file raises
        return f"cannot be read: {str(error).splitlines()[0] if str(error) else type(error)}"
    return "" if found == place.name else "it does not hold what was written"


def _array_problem(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    digest = hashlib.sha256(content).hexdigest()[:32]
    return "" if digest == path.stem else "it does not hold what was written"


def _events_in(path: Path) -> int:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if said != "ok":
            raise sqlite3.DatabaseError(said)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "event_logs" not in tables:
            return 0
        return int(connection.execute("SELECT count(*) FROM event_logs").fetchone()[0])


def _left_over(kind: str, places: list[Path]) -> Iterator[Finding]:
    for place in sorted(places):
        todo = f"{REPAIR} removes it"
        yield Finding(f"{kind} {place}", "left over: nothing names it", todo, _removal(place))


def _removal(place: Path) -> Callable[[], str]:
    def remove() -> str:
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        return "removed"

    return remove


def _forgetting(warehouse: Warehouse) -> Callable[[], str]:
    def forget() -> str:
        with warehouse.session() as connection:
            forget_results(connection)
        return "emptied"

    return forget


def _shard_removal(path: Path) -> Callable[[], str]:
    def drop() -> str:
        drop_shard(path.parent, path.stem)
        return "dropped"

    return drop


def _moving_away(path: Path) -> Callable[[], str]:
    def move() -> str:
        for file in path.parent.glob(f"{path.name}*"):
            if not file.name.endswith(".damaged"):
                file.replace(file.with_name(f"{file.name}.damaged"))
        return f"moved to {path.name}.damaged"

    return move
