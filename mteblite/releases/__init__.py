"""Releases: the content of an exported folder, and the scoring of a model from it."""
