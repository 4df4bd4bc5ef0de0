"""Reference scores: the full main score of each reference model, and who is kept.

Grain: one row per (pool_task, model) in `shared_full_scores`, one per (suite, model) in
`kept_models`.
"""
