"""Pools and outcomes of Classification tasks."""
