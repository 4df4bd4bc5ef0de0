"""Pools: the candidate items of each task.

Grain: one row per (pool_task, item_id) in `pool_items`, one per pool_task in `pool_stats`.
"""
