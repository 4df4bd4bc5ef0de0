"""Releases: exported lite suites, without any text of a benchmark.

Grain: one row per (suite, version) in `lite_scores.releases`, one folder each.
"""
