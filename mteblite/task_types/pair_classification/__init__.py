"""Pools and outcomes of PairClassification tasks."""
