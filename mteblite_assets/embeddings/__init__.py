"""Embeddings: every text of a pool encoded once per model, kept in the vector store.

Grain: one row per (pool_task, model) in `embedding_stats`; vectors are not in the warehouse.
"""
