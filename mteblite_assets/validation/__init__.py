"""Validation: how far predictions can be trusted, each family held out in turn.

Grain: one row per (suite, protocol, variant, fold, model, task) in `lomo_predictions`,
one per (suite, protocol, variant, target, metric) in `validation_metrics`.
"""
