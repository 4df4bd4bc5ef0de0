"""Outcomes: what each model did on each item, and all models of a pool side by side."""

from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import Work
from mteblite_assets.outcomes.matrix import matrix_rows
from mteblite_assets.outcomes.scoring import score_pool


@stage_asset(
    grain=Grain.POOL_TASK_MODEL,
    deps=["pool_items", "embedding_stats"],
    tables=["outcomes.shared_item_outcomes", "outcomes.shared_pool_scores"],
    code_version="2",
    kinds=("duckdb", "numpy"),
    checks=[
        Check(
            "outcomes_finite_and_in_range",
            "Outcomes are finite and in [0, 1]; in [-1, 1] for Summarization.",
            "SELECT o.pool_task, o.model, o.item_id, o.outcome "
            "FROM outcomes.shared_item_outcomes o JOIN suites.resolved_tasks t USING (pool_task) "
            "WHERE o.outcome IS NOT NULL AND (NOT isfinite(o.outcome) OR o.outcome > 1 + 1e-9 "
            "OR o.outcome < CASE t.task_type WHEN 'Summarization' THEN -1 ELSE 0 END - 1e-9)",
        ),
        Check(
            "one_outcome_per_item",
            "Every item of the pool has one outcome per model, and no other item has one.",
            "SELECT o.pool_task, o.model, count(*) AS outcomes, "
            "count(DISTINCT o.item_id) AS items, any_value(p.n_items) AS pool_items "
            "FROM outcomes.shared_item_outcomes o JOIN pools.shared_pool_stats p USING (pool_task) "
            "GROUP BY o.pool_task, o.model "
            "HAVING count(*) <> any_value(p.n_items) OR count(DISTINCT o.item_id) <> count(*)",
        ),
        Check(
            "mean_of_outcomes_is_the_pool_score",
            "Where the main metric is a mean over items, the weighted mean of the outcomes is it.",
            "SELECT o.pool_task, o.model, sum(o.outcome * i.pool_weight) AS mean_outcome, "
            "any_value(s.pool_score) AS pool_score "
            "FROM outcomes.shared_item_outcomes o "
            "JOIN pools.shared_pool_items i USING (pool_task, item_id) "
            "JOIN outcomes.shared_pool_scores s USING (pool_task, model) "
            "JOIN suites.resolved_tasks t USING (pool_task) "
            "WHERE (t.task_type IN ('Retrieval', 'Reranking') "
            "AND NOT contains(t.main_metric, 'auprc') AND NOT starts_with(t.main_metric, 'nauc')) "
            "OR (t.task_type = 'Classification' AND t.main_metric = 'accuracy') "
            "GROUP BY o.pool_task, o.model "
            "HAVING abs(sum(o.outcome * i.pool_weight) - any_value(s.pool_score)) > 2e-5",
        ),
    ],
)
def item_outcomes(work: Work) -> Produced:
    """One row per (pool_task, model, item_id): the item's outcome; with it the pool score.

    nDCG@10, average precision, share of classifiers that are right and so on, by mteb's own
    metric libraries; the pool score is the task's main metric over the whole pool.
    """
    started = time.perf_counter()
    pool = work.bench.artifacts.pool(work.rows("pools.shared_pool_stats"), work.key["pool_task"])
    encoder = work.bench.encoder(work.model, work.max_tokens, work.progress)
    vectors = work.bench.embed(pool, encoder, work.bench.describe(work.entry))
    # Threads cost more than they save on matrices of this size.
    with threadpool_limits(limits=1):
        scored = score_pool(pool, vectors, similarity=encoder.similarity_name)
    saved = (
        "" if scored.observations is None else work.bench.artifacts.save_array(scored.observations)
    )
    outcomes = pd.DataFrame({"item_id": pool.items["item_id"], "outcome": scored.outcomes})
    score = {
        "pool_score": scored.pool_score,
        "n_items": len(outcomes),
        "metrics": json.dumps(scored.metrics, sort_keys=True),
        "observations": saved,
        "seconds": time.perf_counter() - started,
    }
    facts = {
        "pool_score": round(scored.pool_score, 5),
        "items": len(outcomes),
        "mean_outcome": round(float(np.nanmean(scored.outcomes)), 5),
        "undefined": int(np.isnan(scored.outcomes).sum()),
    }
    return Produced(
        {
            "outcomes.shared_item_outcomes": outcomes,
            "outcomes.shared_pool_scores": pd.DataFrame([score]),
        },
        facts,
    )


@stage_asset(
    grain=Grain.POOL_TASK,
    deps=["item_outcomes"],
    tables=["outcomes.outcome_matrix"],
    code_version="2",
)
def outcome_matrix(work: Work) -> Produced:
    """One row per (pool_task, model): a model's outcomes as one list in the order of item_id.

    Gathers all models of a pool; unchanged lists keep their data version and stop the wave.
    """
    rows = matrix_rows(
        work.rows("outcomes.shared_item_outcomes"), work.rows("outcomes.shared_pool_scores")
    )
    values = np.array(rows["outcomes"].tolist())
    return Produced(
        {"outcomes.outcome_matrix": rows},
        {
            "models": len(rows),
            "items": values.shape[1],
            "mean": round(float(np.nanmean(values)), 4),
            "sd_between_models": round(float(np.nanstd(np.nanmean(values, axis=1))), 4),
        },
    )
