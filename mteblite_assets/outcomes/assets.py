"""Outcomes: the outcome of each model on each item, and the matrix of all models of a pool."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from mteblite.files import DamagedFileError
from mteblite.outcomes.matrix import matrix_rows
from mteblite.outcomes.pool_score import PoolScore
from mteblite.pools.pool import Pool
from mteblite.suites.catalog import TaskEntry
from mteblite.task_types.scoring import score_pool
from mteblite_assets.embeddings.assets import pool_and_encoder
from mteblite_assets.graph.declaration import Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import Work
from mteblite_assets.outcomes.checks import CHECKS
from mteblite_assets.pools.assets import stored_pool

if TYPE_CHECKING:
    from mteblite.models.stored_encoder import StoredEncoder


@stage_asset(
    grain=Grain.POOL_TASK_MODEL,
    deps=["pool_items", "embedding_stats"],
    tables=["outcomes.shared_item_outcomes", "outcomes.shared_pool_scores"],
    many_rows=True,
    code_version="2",
    nullable=["outcome", "pool_score"],
    kinds=("duckdb", "numpy"),
    checks=CHECKS,
)
def item_outcomes(work: Work) -> Produced:
    """One row per (pool_task, model, item_id): the outcome; and the pool score of the model.

    Outcomes are nDCG@10, average precision, the share of correct classifiers and so on, from the
    metric libraries of mteb. The pool score is the main metric of the task over the whole pool.
    """
    started = time.perf_counter()
    pool, encoder = pool_and_encoder(work)
    scored = _scored(work, pool, encoder, work.entry)
    observed = scored.observations
    saved = "" if observed is None else work.ports.artifacts.save_array(observed)
    score = _score(scored, saved).assign(seconds=time.perf_counter() - started)
    outcomes = pd.DataFrame({"item_id": pool.items["item_id"], "outcome": scored.outcomes})
    tables = {"outcomes.shared_item_outcomes": outcomes, "outcomes.shared_pool_scores": score}
    return Produced(tables, _shown(scored))


def _scored(work: Work, pool: Pool, encoder: StoredEncoder, entry: TaskEntry) -> PoolScore:
    vectors = work.ports.models.embed(pool, encoder, work.ports.tasks.describe(entry))
    # Threads cost more than they save on matrices of this size.
    with threadpool_limits(limits=1):
        return score_pool(pool, vectors, similarity=encoder.similarity_name)


def stored_observations(work: Work, pool_task: str, model: str, name: str) -> np.ndarray:
    """Return a model's observations on a pool from their file; a damaged one is made again.

    Args:
        work: the partition of a suite that needs them; it reads `pools.shared_pool_stats`.
        pool_task: the pool's key.
        model: the model's name.
        name: the file's name.

    Raises:
        ValueError: the file is damaged, and the model no longer gives these observations.
    """
    artifacts = work.ports.artifacts
    try:
        return artifacts.load_array(name)
    except DamagedFileError as error:
        work.progress(f"{error}; computing it again")
        stats = work.rows("pools.shared_pool_stats")
        pool = stored_pool(work, stats[stats["pool_task"] == pool_task], pool_task)
        spec = work.catalog.pool_models(pool_task).get(model)
        if spec is not None:
            encoder = work.ports.models.encoder(spec, work.max_tokens, work.progress)
            entry = work.catalog.entries_of_pool(pool_task)[0]
            observed = _scored(work, pool, encoder, entry).observations
            if observed is not None and artifacts.save_array(observed) == name:
                return artifacts.load_array(name)
        raise ValueError(
            f"{error}; computed again it is another one, because model {model!r} or the installed "
            "packages changed: run `mteblite materialize --stage outcomes --force` for its suite"
        ) from error


def _score(scored: PoolScore, observations: str) -> pd.DataFrame:
    row = {
        "pool_score": scored.pool_score,
        "n_items": len(scored.outcomes),
        "metrics": json.dumps(scored.metrics, sort_keys=True),
        "observations": observations,
    }
    return pd.DataFrame([row])


def _shown(scored: PoolScore) -> dict[str, Any]:
    return {
        "pool_score": round(scored.pool_score, 5),
        "items": len(scored.outcomes),
        "mean_outcome": round(float(np.nanmean(scored.outcomes)), 5),
        "undefined": int(np.isnan(scored.outcomes).sum()),
    }


@stage_asset(
    grain=Grain.POOL_TASK,
    deps=["item_outcomes"],
    tables=["outcomes.outcome_matrix"],
    code_version="2",
    nullable=["pool_score"],
)
def outcome_matrix(work: Work) -> Produced:
    """One row per (pool_task, model): a model's outcomes as one list in the order of item_id.

    Unchanged lists keep their data version, so that later assets stay fresh.
    """
    rows = matrix_rows(
        work.rows("outcomes.shared_item_outcomes"), work.rows("outcomes.shared_pool_scores")
    )
    values = np.array(rows["outcomes"].tolist())
    facts = {
        "models": len(rows),
        "items": values.shape[1],
        "mean": round(float(np.nanmean(values)), 4),
        "sd_between_models": round(float(np.nanstd(np.nanmean(values, axis=1))), 4),
    }
    return Produced({"outcomes.outcome_matrix": rows}, facts)
