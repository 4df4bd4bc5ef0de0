"""Suites: the tasks, models and settings of a lite benchmark.

Grain: one row per (suite, task) in `suite_tasks`, one per (suite, model) in `roster`.
"""
