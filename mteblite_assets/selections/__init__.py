"""Selections: the K items of each task, with their weights.

Grain: one row per (suite, task, item_id) in `selected_items`.
"""
