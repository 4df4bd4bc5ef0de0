"""The one driver that runs partitions of any stage asset.

It reads exactly what the declaration's deps write, skips what is current, calls the stage's
function, and stores rows and ledger entry in one transaction, several partitions at a time. A
partition that fails is recorded with its reason and does not stop its neighbours; a run that is
killed keeps what it had stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pandas as pd

from mteblite.suites.catalog import Catalog
from mteblite_assets.graph.computing import Done, Prepared, read_inputs, run_one
from mteblite_assets.graph.damage import (
    DamagedRowsError,
    check_contents,
    mark_damaged,
    record_contents,
)
from mteblite_assets.graph.declaration import Declaration
from mteblite_assets.graph.keys import asked_for, columns_of
from mteblite_assets.graph.requirements import entries_read, require_safely
from mteblite_assets.graph.work import SettingsContext
from mteblite_resources.database.ledger import delete_ledger, read_ledger, write_ledger
from mteblite_resources.warehouse import replace_partition
from mteblite_resources.workbench import Workbench

CHUNK = 16
FLUSH_SECONDS = 2.0
ATTEMPTS = 3
"""Tries of a partition whose inputs another run changed while it was computed."""


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
    unasked = (k for k in keys if k not in known)
    yield from (
        Done(k, "not_applicable", reason="no suite asks for this partition") for k in unasked
    )
    total, counted = len(queue), 0
    for _ in range(ATTEMPTS):
        again: list[str] = []
        pending: list[Done] = []
        since = time.monotonic()
        try:
            for start in range(0, len(queue), CHUNK):
                chunk = queue[start : start + CHUNK]
                for item in _prepare(declaration, chunk, catalog, bench, force=force):
                    done = run_one(declaration, item, catalog, bench, force=force, log=log)
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


def forget_partitions(declaration: Declaration, keys: Sequence[str], bench: Workbench) -> None:
    """Delete the rows of partitions whose subject is gone, and their ledger entries."""
    if not keys:
        return
    with bench.warehouse.session() as connection:
        for key in keys:
            columns = columns_of(declaration.grain, key)
            for table in declaration.tables:
                replace_partition(connection, table, columns, pd.DataFrame())
            delete_ledger(connection, declaration.name, key)


def _prepare(
    declaration: Declaration,
    keys: Sequence[str],
    catalog: Catalog,
    bench: Workbench,
    *,
    force: bool,
) -> list[Prepared]:
    """Read what partitions are made of; a forced run trusts no rows by their number alone."""
    prepared = []
    with bench.warehouse.session() as connection:
        ledger = read_ledger(connection, entries_read(declaration, keys, catalog))
        for key in keys:
            context = SettingsContext(columns_of(declaration.grain, key), catalog, bench.ports)
            need, inputs = require_safely(declaration, context, key, ledger), {}
            try:
                if force and not need.blocked:
                    check_contents(connection, declaration, key, context, ledger)
                if not need.blocked:
                    inputs = read_inputs(connection, declaration, key, context, ledger)
            except DamagedRowsError as error:
                mark_damaged(connection, error.found)
                # Without its settings it runs again once its inputs are mended.
                need = replace(need, blocked=str(error), settings_hash="")
            entry = ledger.get((declaration.name, key))
            prepared.append(Prepared(key, need, entry, inputs))
    return prepared


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
        keys = [done.key for done in batch]
        ledger = read_ledger(connection, entries_read(declaration, keys, catalog))
        for done in batch:
            context = SettingsContext(columns_of(declaration.grain, done.key), catalog, bench.ports)
            if done.status == "ok":
                now = require_safely(declaration, context, done.key, ledger)
                if (
                    done.need is None
                    or now.inputs != done.need.inputs
                    or (
                        declaration.keeps_rows
                        and ledger.get((declaration.name, done.key)) != done.entry
                    )
                ):
                    again.append(done.key)
                    continue
            kept.append(_write(connection, declaration, done, ledger, run_id))
        record_contents(connection, declaration, [d.key for d in kept if d.status == "ok"])
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
    if done.produced is not None and done.status == "ok":
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
