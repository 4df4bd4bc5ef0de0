"""One partition of an asset: its rows read, its function called, its result guarded."""

from __future__ import annotations

import errno
import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from mteblite.own_errors import INTERRUPTED, raised_by_us
from mteblite.suites.catalog import Catalog
from mteblite_assets.flow import declarations
from mteblite_assets.graph.content import content_version, text_version
from mteblite_assets.graph.damage import check_counts
from mteblite_assets.graph.declaration import NUMBERS, Declaration, Produced
from mteblite_assets.graph.keys import columns_of, upstream_keys
from mteblite_assets.graph.requirements import Ledger, Requirement, why_stale
from mteblite_assets.graph.work import SettingsContext, Work
from mteblite_resources.declared_tables import DeclaredTables, UndeclaredTableError
from mteblite_resources.warehouse import read_partitions
from mteblite_resources.workbench import Workbench


@dataclass(frozen=True)
class Done:
    """One partition after the driver: `ok`, `failed`, `fresh` or `not_applicable`.

    `entry` is its ledger entry from before it was computed.
    """

    key: str
    status: str
    need: Requirement | None = None
    data_version: str = ""
    produced: Produced | None = None
    n_rows: int = 0
    seconds: float = 0.0
    reason: str = ""
    entry: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Prepared:
    """A partition with its rows read, ready to compute."""

    key: str
    need: Requirement
    entry: Mapping[str, Any] | None
    inputs: Mapping[str, pd.DataFrame]


def read_inputs(
    connection: duckdb.DuckDBPyConnection,
    declaration: Declaration,
    key: str,
    context: SettingsContext,
    ledger: Ledger,
) -> dict[str, pd.DataFrame]:
    """Return by table name the rows that a partition may read: of its deps, and what it keeps.

    Raises:
        DamagedRowsError: of a dep there are fewer or more rows than were made.
    """
    inputs: dict[str, pd.DataFrame] = {}
    wanted = [(declaration, [key])] if declaration.keeps_rows else []
    for dep in declaration.deps if declaration.hands_rows else ():
        upstream = declarations()[dep]
        keys = upstream_keys(upstream.grain, declaration.grain, key, context.catalog)
        wanted.append((upstream, keys if declaration.reads(dep, context) else []))
    for upstream, keys in wanted:
        columns = list(columns_of(upstream.grain, keys[0])) if keys else []
        frame = pd.DataFrame([columns_of(upstream.grain, k) for k in keys], columns=columns)
        for table in upstream.tables:
            inputs[table] = read_partitions(connection, table, frame) if keys else frame
        if upstream is not declaration:
            check_counts(upstream, keys, inputs, ledger)
    return inputs


def run_one(
    declaration: Declaration,
    item: Prepared,
    catalog: Catalog,
    bench: Workbench,
    *,
    force: bool,
    log: Callable[[str], None],
) -> Done:
    """Compute a partition unless it is fresh or blocked; what its function raises is its reason.

    Raises:
        OSError: the disk is full.
    """
    if item.need.blocked:
        return Done(item.key, "failed", item.need, reason=item.need.blocked)
    if not force and not why_stale(item.entry, item.need):
        version = item.entry["data_version"] if item.entry else ""
        return Done(item.key, "fresh", item.need, data_version=version)
    started = time.perf_counter()
    try:
        produced = declaration.compute(_work(declaration, item, catalog, bench, log))
        _check_written(declaration, produced)
    except Exception as error:
        return Done(
            item.key,
            "failed",
            item.need,
            seconds=time.perf_counter() - started,
            reason=_reason(error, log)[:2000],
        )
    return Done(
        item.key,
        "failed" if produced.failed else "ok",
        item.need,
        "" if produced.failed else _version(declaration, item.need, produced),
        produced,
        sum(len(rows) for rows in produced.tables.values()),
        time.perf_counter() - started,
        produced.failed or produced.nothing,
        item.entry,
    )


def _reason(error: Exception, log: Callable[[str], None]) -> str:
    """Return what the ledger says of an error; the log gets the traceback of one that is a bug.

    Raises:
        OSError: the disk is full.
        KeyboardInterrupt: a signal came during a query.
    """
    if str(error) == INTERRUPTED:
        raise KeyboardInterrupt from error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        raise error
    refused = isinstance(error, ValueError) and raised_by_us(error)
    if not refused:
        log(traceback.format_exc())
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def _work(
    declaration: Declaration,
    item: Prepared,
    catalog: Catalog,
    bench: Workbench,
    log: Callable[[str], None],
) -> Work:
    """What a compute function is handed; in SQL it reaches what its declaration names alone."""
    reads = [t for dep in declaration.deps for t in declarations()[dep].self_written]
    return Work(
        key=columns_of(declaration.grain, item.key),
        catalog=catalog,
        ports=bench.ports,
        inputs=item.inputs,
        tables=DeclaredTables(declaration.name, reads, declaration.self_written, bench.warehouse),
        progress=lambda text: log(f"{declaration.name} {item.key}: {text}"),
    )


def _check_written(declaration: Declaration, produced: Produced) -> None:
    """Refuse rows of an undeclared table, which would be lost, and numbers that are none.

    Raises:
        UndeclaredTableError: names asset and table.
        ValueError: a column of NUMBERS holds NaN; names asset, table, column and the first row.
    """
    for table in sorted(set(produced.tables) - set(declaration.tables)):
        raise UndeclaredTableError(
            f"asset {declaration.name} made rows of {table}, which is not among its tables "
            f"{list(declaration.tables)}: add it to `tables`"
        )
    for table, rows in produced.tables.items():
        for column in sorted((NUMBERS & set(rows.columns)) - set(declaration.nullable)):
            bad = ~np.isfinite(rows[column].to_numpy(dtype=float))
            if bad.any():
                first = rows[bad].iloc[0].filter(["task", "model", "item_id"]).to_dict()
                raise ValueError(
                    f"{bad.sum()} of {len(rows)} rows of {table} hold no number in `{column}` "
                    f"({first or rows.loc[bad, column].iloc[0]}); expected a finite number, so "
                    "nothing of this partition is stored: check the vectors of its models"
                )


def _version(declaration: Declaration, need: Requirement, produced: Produced) -> str:
    """Data version of a partition: of its content, or of what it was made of where no rows show."""
    if produced.version is not None:
        return text_version(produced.version)
    if declaration.hands_rows:
        return content_version(produced.tables, declaration.unversioned)
    return text_version(json.dumps([need.settings_hash, dict(need.inputs)], sort_keys=True))
