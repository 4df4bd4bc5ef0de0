"""Reference scores: the full main score of each reference model, and who is kept.

Grain: one row per source in `result_sources` (the cells of the official results lie beside it), one
per (pool_task, model) in `public_scores` and `shared_full_scores`, one per (suite, model) in
`kept_models`.
"""
