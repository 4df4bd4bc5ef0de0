"""Releases: what an exported folder holds, and how a model is scored from it."""
