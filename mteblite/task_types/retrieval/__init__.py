"""Pools and outcomes of Retrieval tasks; Reranking shares most of it."""
