"""Pools of Reranking tasks; all else is as in retrieval."""
