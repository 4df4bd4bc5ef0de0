"""The one driver that runs partitions of any stage asset.

It reads exactly what the declaration's deps write, skips what is current, calls the stage's
function, and stores rows and ledger entry in one transaction, several partitions at a time. A
partition that fails is recorded with its reason and does not stop its neighbours; a run that is
killed keeps what it had stored.
"""

from __future__ import annotations

import errno
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from mteblite.suites.catalog import Catalog
from mteblite_assets.graph.content import content_version, text_version
from mteblite_assets.graph.declaration import Declaration, Produced, declarations
from mteblite_assets.graph.keys import asked_for, columns_of, upstream_keys
from mteblite_assets.graph.plan import Requirement, require_safely, why_stale
from mteblite_assets.graph.work import SettingsContext, Work
from mteblite_resources.warehouse import (
    read_ledger,
    read_partitions,
    replace_partition,
    write_ledger,
)
from mteblite_resources.workbench import Workbench

CHUNK = 16
FLUSH_SECONDS = 2.0
ATTEMPTS = 3
"""Tries of a partition whose inputs another run changed while it was computed."""


@dataclass(frozen=True)
class Done:
    """One partition after the driver: `ok`, `failed`, `fresh` or `not_applicable`."""

    key: str
    status: str
    need: Requirement | None = None
    data_version: str = ""
    produced: Produced | None = None
    n_rows: int = 0
    seconds: float = 0.0
    reason: str = ""
    upstream: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """A partition with its rows read, ready to compute."""

    key: str
    need: Requirement
    entry: Mapping[str, Any] | None
    inputs: Mapping[str, pd.DataFrame]


def run_partitions(
    declaration: Declaration,
    keys: Sequence[str],
    catalog: Catalog,
    bench: Workbench,
    *,
    run_id: str = "",
    force: bool = False,
    log: Callable[[str], None] = lambda _: None,
) -> Iterator[Done]:
    """Run partitions and yield each one once its rows are stored.

    Args:
        declaration: the asset.
        keys: partition keys; those that no suite asks for come back as `not_applicable`.
        catalog: suites, tasks and models as they are now.
        bench: the outside world.
        run_id: the Dagster run, kept in the ledger.
        force: run partitions that are current, too.
        log: receives one line of progress per partition.

    Raises:
        OSError: the disk is full; what was finished is stored.
    """
    queue = asked_for(declaration.grain, keys, catalog)
    known = set(queue)
    yield from (Done(k, "not_applicable") for k in keys if k not in known)
    total, counted = len(queue), 0
    for _ in range(ATTEMPTS):
        again: list[str] = []
        pending: list[Done] = []
        since = time.monotonic()
        try:
            for start in range(0, len(queue), CHUNK):
                for item in _prepare(declaration, queue[start : start + CHUNK], catalog, bench):
                    done = _run_one(declaration, item, catalog, bench, force=force, log=log)
                    counted += 1
                    log(_line(declaration, done, min(counted, total), total))
                    pending.append(done)
                    if len(pending) >= CHUNK or time.monotonic() - since > FLUSH_SECONDS:
                        batch, pending = pending, []
                        yield from _store(declaration, batch, catalog, bench, run_id, again)
                        since = time.monotonic()
        finally:
            stored = list(_store(declaration, pending, catalog, bench, run_id, again))
        yield from stored
        queue = again
        if not queue:
            return
    for key in queue:
        yield Done(key, "failed", reason="its inputs kept changing while it ran; run again")


def _prepare(
    declaration: Declaration, keys: Sequence[str], catalog: Catalog, bench: Workbench
) -> list[Prepared]:
    prepared = []
    with bench.warehouse.session() as connection:
        ledger = read_ledger(connection)
        for key in keys:
            context = SettingsContext(columns_of(declaration.grain, key), catalog, bench)
            need = require_safely(declaration, context, key, ledger)
            inputs = {} if need.blocked else _read_inputs(connection, declaration, key, context)
            entry = ledger.get((declaration.name, key))
            prepared.append(Prepared(key, need, entry, inputs))
    return prepared


def _read_inputs(
    connection: duckdb.DuckDBPyConnection,
    declaration: Declaration,
    key: str,
    context: SettingsContext,
) -> dict[str, pd.DataFrame]:
    inputs = {}
    for dep in declaration.deps:
        upstream = declarations()[dep]
        keys = upstream_keys(upstream.grain, declaration.grain, key, context.catalog)
        keys = keys if declaration.reads(dep, context) else []
        columns = list(columns_of(upstream.grain, keys[0])) if keys else []
        wanted = pd.DataFrame([columns_of(upstream.grain, k) for k in keys], columns=columns)
        for table in upstream.tables:
            inputs[table] = read_partitions(connection, table, wanted) if keys else wanted
    return inputs


def _run_one(
    declaration: Declaration,
    item: Prepared,
    catalog: Catalog,
    bench: Workbench,
    *,
    force: bool,
    log: Callable[[str], None],
) -> Done:
    if item.need.blocked:
        return Done(item.key, "failed", item.need, reason=item.need.blocked)
    if not force and not why_stale(item.entry, item.need):
        version = item.entry["data_version"] if item.entry else ""
        return Done(item.key, "fresh", item.need, data_version=version)
    work = Work(
        key=columns_of(declaration.grain, item.key),
        catalog=catalog,
        bench=bench,
        inputs=item.inputs,
        progress=lambda text: log(f"{declaration.name} {item.key}: {text}"),
    )
    started = time.perf_counter()
    try:
        produced = declaration.compute(work)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        if not _foreseen(error):
            log(traceback.format_exc())
        seconds = time.perf_counter() - started
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return Done(item.key, "failed", item.need, seconds=seconds, reason=reason[:2000])
    if produced.version is not None:
        version = text_version(produced.version)
    else:
        version = content_version(produced.tables, declaration.unversioned)
    n_rows = sum(len(rows) for rows in produced.tables.values())
    seconds = time.perf_counter() - started
    return Done(item.key, "ok", item.need, version, produced, n_rows, seconds)


def _foreseen(error: Exception) -> bool:
    """Say whether a module of ours refused something: its words are enough then, it is no bug."""
    places = traceback.extract_tb(error.__traceback__)
    ours = {"mteblite_assets", "mteblite_resources"}
    return isinstance(error, ValueError) and bool(ours & set(Path(places[-1].filename).parts))


def _store(
    declaration: Declaration,
    batch: Sequence[Done],
    catalog: Catalog,
    bench: Workbench,
    run_id: str,
    again: list[str],
) -> Iterator[Done]:
    """Write a batch in one transaction; what was computed from inputs that changed goes back."""
    if not any(done.status in ("ok", "failed") for done in batch):
        yield from batch
        return
    kept = []
    with bench.warehouse.session() as connection:
        ledger = read_ledger(connection)
        for done in batch:
            context = SettingsContext(columns_of(declaration.grain, done.key), catalog, bench)
            if done.status == "ok":
                now = require_safely(declaration, context, done.key, ledger)
                if done.need is None or now.inputs != done.need.inputs:
                    again.append(done.key)
                    continue
            kept.append(_write(connection, declaration, done, ledger, run_id))
    yield from kept


def _write(
    connection: duckdb.DuckDBPyConnection,
    declaration: Declaration,
    done: Done,
    ledger: Mapping[tuple[str, str], Mapping[str, Any]],
    run_id: str,
) -> Done:
    if done.status == "fresh" or done.need is None:
        return done
    if done.produced is not None:
        columns = columns_of(declaration.grain, done.key)
        for table in declaration.tables:
            rows = done.produced.tables.get(table, pd.DataFrame())
            replace_partition(connection, table, columns, rows)
    before = ledger.get((declaration.name, done.key)) or {}
    write_ledger(
        connection,
        declaration.name,
        done.key,
        {
            "status": done.status,
            "data_version": done.data_version or before.get("data_version"),
            "code_version": done.need.code_version,
            "settings_hash": done.need.settings_hash,
            "inputs": dict(done.need.inputs),
            "reason": done.reason or None,
            "n_rows": done.n_rows,
            "seconds": done.seconds,
            "run_id": run_id,
        },
    )
    return done


def _line(declaration: Declaration, done: Done, number: int, total: int) -> str:
    tail = f": {done.reason}" if done.reason else ""
    took = f", {done.seconds:.1f} s" if done.seconds >= 0.1 else ""
    return f"{declaration.name} {number}/{total} {done.key} {done.status}{took}{tail}"
