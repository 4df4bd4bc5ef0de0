"""Scores of a model from its outcomes on the selected items, with intervals."""
