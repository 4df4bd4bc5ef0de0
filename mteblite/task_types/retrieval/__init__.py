"""Pools and outcomes of Retrieval and Reranking tasks."""
