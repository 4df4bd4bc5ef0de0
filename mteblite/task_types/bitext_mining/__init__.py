"""Pools and outcomes of BitextMining tasks."""
