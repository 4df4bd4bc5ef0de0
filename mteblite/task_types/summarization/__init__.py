"""Pools and outcomes of Summarization tasks."""
