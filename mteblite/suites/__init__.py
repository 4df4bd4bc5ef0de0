"""Suites: file, tasks, models and headline, and the tasks as mteb resolves them."""
