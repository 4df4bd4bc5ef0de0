"""Checks of the outcomes: their range, one per item, and their mean where it is the pool score."""

from __future__ import annotations

from mteblite_assets.graph.declaration import Check

# The score of a task is the mean of its cells (split, subset). The score of a cell is the mean of
# its defined outcomes: mteb skips documents whose summaries all have one human score. A cell
# without defined outcomes has no score; then the task has none. `mean_is_score` marks the types
# and metrics for which this holds; their cells have equal weights. The tolerance is for scores of
# search, which mteb rounds to 5 decimals.
_MEAN_IS_NOT_THE_SCORE = """
WITH cells AS (
    SELECT o.pool_task, o.model, i.split, i.hf_subset,
        any_value(s.pool_score) FILTER (isfinite(s.pool_score)) AS pool_score,
        sum(o.outcome * i.pool_weight) FILTER (isfinite(o.outcome))
            / sum(i.pool_weight) FILTER (isfinite(o.outcome)) AS mean_outcome
    FROM outcomes.shared_item_outcomes o
    JOIN pools.shared_pool_items i USING (pool_task, item_id)
    JOIN outcomes.shared_pool_scores s USING (pool_task, model)
    SEMI JOIN (SELECT pool_task FROM suites.suite_tasks WHERE mean_is_score) USING (pool_task)
    GROUP BY o.pool_task, o.model, i.split, i.hf_subset
)
SELECT pool_task, model, avg(mean_outcome) AS mean_outcome, any_value(pool_score) AS pool_score
FROM cells GROUP BY pool_task, model
HAVING abs(avg(mean_outcome) - any_value(pool_score)) > 2e-5
    OR (any_value(pool_score) IS NULL) <> (count(mean_outcome) < count(*))
"""

CHECKS = [
    Check(
        "outcomes_finite_and_in_range",
        "Outcomes are finite, at most 1 and at least the lowest that their type allows.",
        "SELECT o.pool_task, o.model, o.item_id, o.outcome "
        "FROM outcomes.shared_item_outcomes o "
        "JOIN (SELECT DISTINCT pool_task, lowest_outcome FROM suites.suite_tasks) t "
        "USING (pool_task) "
        "WHERE o.outcome IS NOT NULL AND (NOT isfinite(o.outcome) OR o.outcome > 1 + 1e-9 "
        "OR o.outcome < t.lowest_outcome - 1e-9)",
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
        "Where the main metric is a mean over items, it is the mean of the defined outcomes.",
        _MEAN_IS_NOT_THE_SCORE,
    ),
]
