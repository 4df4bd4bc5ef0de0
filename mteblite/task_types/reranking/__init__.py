"""Reranking tasks, which differ from retrieval in where their candidates come from."""
