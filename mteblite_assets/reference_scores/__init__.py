"""Reference scores: the full main score of each reference model, and the kept models.

Grain: one row per source in `result_sources`, one per (pool_task, model) in `public_scores` and
`shared_full_scores`, one per (suite, model) in `kept_models`.
"""
