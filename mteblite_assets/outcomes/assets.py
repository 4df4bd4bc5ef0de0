"""Outcomes: the outcome of each model on each item, and the matrix of all models of a pool."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from mteblite.outcomes.matrix import matrix_rows
from mteblite.outcomes.pool_score import PoolScore
from mteblite.task_types.scoring import score_pool
from mteblite_assets.embeddings.assets import pool_and_encoder
from mteblite_assets.graph.declaration import Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import Work
from mteblite_assets.outcomes.checks import CHECKS


@stage_asset(
    grain=Grain.POOL_TASK_MODEL,
    deps=["pool_items", "embedding_stats"],
    tables=["outcomes.shared_item_outcomes", "outcomes.shared_pool_scores"],
    code_version="2",
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
    vectors = work.ports.models.embed(pool, encoder, work.ports.tasks.describe(work.entry))
    # Threads cost more than they save on matrices of this size.
    with threadpool_limits(limits=1):
        scored = score_pool(pool, vectors, similarity=encoder.similarity_name)
    observed = scored.observations
    saved = "" if observed is None else work.ports.artifacts.save_array(observed)
    score = _score(scored, saved).assign(seconds=time.perf_counter() - started)
    outcomes = pd.DataFrame({"item_id": pool.items["item_id"], "outcome": scored.outcomes})
    tables = {"outcomes.shared_item_outcomes": outcomes, "outcomes.shared_pool_scores": score}
    return Produced(tables, _shown(scored))


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
