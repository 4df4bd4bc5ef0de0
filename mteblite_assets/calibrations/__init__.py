"""Calibrations: maps from the outcomes on a selection to the full score.

Grain: one row per (suite, task) in `calibrations`.
"""
