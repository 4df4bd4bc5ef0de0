"""Outcomes: the outcome of each model on each item, and its score on the whole pool.

Grain: one row per (pool_task, model, item_id) in `shared_item_outcomes`, one per (pool_task, model)
in `shared_pool_scores` and `outcome_matrix`.
"""
