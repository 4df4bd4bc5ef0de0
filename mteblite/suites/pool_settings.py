"""How large the pools of a suite are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PoolSettings:
    """Caps of a pool; None means no cap.

    Attributes:
        max_items: items per task, split evenly over its cells.
        bm25_top: candidates per query from BM25 over the full corpus; None: all documents.
        max_relevant: relevant documents kept per query.
        random_documents: documents shared by all queries of a task.
        seed: part of the key of every random draw.
    """

    max_items: int | None = 1000
    bm25_top: int | None = 30
    max_relevant: int | None = 100
    random_documents: int | None = 1000
    seed: int = 0
