"""Item parameters: the response of each item to ability, and the ability of each model.

Grain: one row per (suite, task, item_id) in `item_parameters`, one per (suite, task, model) in
`abilities`.
"""
