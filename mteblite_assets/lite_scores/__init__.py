"""Lite scores: the predicted full score of a model from its outcomes on the selected items.

Grain: one row per (suite, task, model) in `task_scores`, one per (suite, model) in `suite_scores`.
"""
