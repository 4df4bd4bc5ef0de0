"""Outcomes: what each model did on each item, and its score on the whole pool.

Grain: one row per (pool_task, model, item_id) in `pool_outcomes`, one per (pool_task, model) in `pool_model_scores`.
"""
