"""Item parameters: how each item responds to ability, and each model's ability.

Grain: one row per (suite, task, item_id) in `item_parameters`, one per (suite, task, model) in
`abilities`.
"""
