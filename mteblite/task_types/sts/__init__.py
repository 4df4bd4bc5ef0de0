"""Pools and outcomes of STS tasks."""
