"""Pools: the candidate items of each task, drawn once for all suites with equal settings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from mteblite.files import DamagedFileError
from mteblite.pools.costs import item_tokens
from mteblite.pools.costs import pool_costs as count_costs
from mteblite.pools.pool import Pool
from mteblite.suites.catalog import TaskEntry
from mteblite.task_types.drawing import draw_pool
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import SettingsContext, Work

LOSSES = ("n_dropped_relevant", "n_missing_relevant", "n_missing_candidates")
"""Counts of a search pool: relevant documents beyond the cap; documents not in the corpus."""


def _settings(context: SettingsContext) -> Any:
    entry = context.entry
    settings = context.catalog.suite(entry.suite).pool_settings(entry)
    return asdict(settings), list(entry.request.metrics)


@stage_asset(
    grain=Grain.POOL_TASK,
    deps=["resolved_tasks"],
    tables=["pools.shared_pool_items", "pools.shared_pool_stats"],
    code_version="2",
    settings=_settings,
    kinds=("duckdb", "parquet"),
    checks=[
        Check(
            "item_ids_unique",
            "An item id occurs once per pool.",
            "SELECT pool_task, item_id, count(*) AS n FROM pools.shared_pool_items "
            "GROUP BY ALL HAVING count(*) > 1",
        ),
        Check(
            "weights_sum_to_one",
            "The pool weights of a task sum to 1.",
            "SELECT pool_task, sum(pool_weight) AS total FROM pools.shared_pool_items "
            "GROUP BY ALL HAVING abs(sum(pool_weight) - 1) > 1e-9",
        ),
    ],
)
def pool_items(work: Work) -> Produced:
    """One row per (pool_task, item_id): candidate items with stratum, gold and pool weight.

    mteb loads the data; items are drawn with seeds from stable keys. Texts, candidate lists and
    train rows are Parquet files beside the warehouse, named by the hash of the pool.
    """
    started = time.perf_counter()
    pool, notes_of_data = _drawn(work, work.entry)
    pool_hash = work.ports.artifacts.save_pool(work.key["pool_task"], pool)
    tables = {
        "pools.shared_pool_items": pool.items,
        "pools.shared_pool_stats": _stats(work, pool, pool_hash, time.perf_counter() - started),
    }
    notes = {"notes": "; ".join(notes_of_data)} if notes_of_data else {}
    return Produced(tables, _shown(pool, pool_hash) | notes, version=pool_hash)


def _drawn(work: Work, entry: TaskEntry) -> tuple[Pool, Sequence[str]]:
    """Draw the pool of a task from its data; return it and the notes on the data."""
    work.progress("loading data")
    data = work.ports.tasks.source.load(work.ports.tasks.describe(entry))
    for note in data.notes:
        work.progress(f"note: {note}")
    work.progress("drawing the pool")
    return draw_pool(data, work.catalog.suite(entry.suite).pool_settings(entry)), data.notes


def stored_pool(work: Work, stats: pd.DataFrame, pool_task: str) -> Pool:
    """Return a pool from its files; damaged files are made again from the task's data.

    Args:
        work: the partition that needs it.
        stats: its row of `pools.shared_pool_stats`, or one with its `pool_hash`.
        pool_task: its key.

    Raises:
        ValueError: the files are damaged, and the data no longer give this pool.
    """
    try:
        return work.ports.artifacts.pool(stats, pool_task)
    except DamagedFileError as error:
        work.progress(f"{error}; drawing it again")
        # No entry asks for the pool of own data that changed.
        entries = work.catalog.entries_of_pool(pool_task)
        pool = _drawn(work, entries[0])[0] if entries else None
        made = "" if pool is None else work.ports.artifacts.save_pool(pool_task, pool)
        if pool is None or made != str(stats["pool_hash"].iloc[0]):
            raise ValueError(
                f"{error}; drawn again it is another pool, because the data or the settings "
                "changed: run `mteblite materialize --stage pools --force` for its suite"
            ) from error
        return pool


def _stats(work: Work, pool: Pool, pool_hash: str, seconds: float) -> pd.DataFrame:
    row = {
        "task": work.entry.task,
        "n_items": len(pool.items),
        "n_texts": len(pool.texts),
        "n_available": pool.meta["n_available"],
        "n_dropped_relevant": pool.meta.get("n_dropped_relevant", 0),
        "seconds": seconds,
        "pool_hash": pool_hash,
    }
    return pd.DataFrame([row])


def _shown(pool: Pool, pool_hash: str) -> dict[str, Any]:
    strata = pool.items["stratum"].astype(str).value_counts().head(10)
    return {
        "items": len(pool.items),
        "of": pool.meta["n_available"],
        "texts": len(pool.texts),
        "pool_hash": pool_hash,
        "strata": ", ".join(f"{s or '-'} {n}" for s, n in strata.items()),
        **{name: pool.meta[name] for name in LOSSES if pool.meta.get(name)},
    }


@stage_asset(
    grain=Grain.POOL_TASK,
    deps=["pool_items"],
    tables=["pools.shared_pool_costs", "pools.shared_item_costs"],
    code_version="1",
    settings=lambda context: context.max_tokens,
)
def pool_costs(work: Work) -> Produced:
    """One row per pool_task: tokens of a selected item, and tokens that all items share.

    A token budget is divided by them, and selections of other sizes are compared by them.
    """
    pool = stored_pool(work, work.rows("pools.shared_pool_stats"), work.key["pool_task"])
    row = asdict(count_costs(pool, work.max_tokens))
    facts = {name: round(float(value), 1) for name, value in row.items()}
    return Produced(
        {
            "pools.shared_pool_costs": pd.DataFrame([row]),
            "pools.shared_item_costs": item_tokens(pool, work.max_tokens),
        },
        facts,
    )
