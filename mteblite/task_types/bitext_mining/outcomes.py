"""Outcomes of BitextMining: 1 if the gold target is the nearest of target and distractors.

The official score is the support-weighted F1 over targets (mteb/abstasks/text/bitext_mining.py).
It is at most the accuracy: a target that is nearest to other sources too loses precision.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.outcomes.cells import align, cells_of, mean_of_cells
from mteblite.outcomes.pool_score import PoolScore
from mteblite.outcomes.similarity import blocks, paired, prepare
from mteblite.pools.pool import Pool
from mteblite.pools.restriction import of_cell

METRICS = ("f1", "accuracy", "precision", "recall")


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Return outcomes 0 or 1, and the score; mteb searches by the model's own similarity."""
    pairs = align(pool.frames["pairs"], pool.items)
    gold = pairs["target_index"].to_numpy()
    nearest = np.empty_like(gold)
    cells = cells_of(pool.items)
    for rows in cells:
        split, subset = pool.items[["split", "hf_subset"]].iloc[rows[0]]
        distractors = of_cell(pool.frames["distractors"], (split, subset))
        nearest[rows] = _nearest(pairs.iloc[rows], distractors, vectors, similarity)
    means = {
        name: mean_of_cells([_metric(name, gold[rows], nearest[rows]) for rows in cells])
        for name in pool.metric_names
    }
    return PoolScore.of(pool, (nearest == gold).astype(float), means)


def _nearest(
    pairs: pd.DataFrame, distractors: pd.DataFrame, vectors: np.ndarray, similarity: str
) -> np.ndarray:
    """Return the (n,) target_index nearest to each source; the smallest of equally near ones."""
    sources = prepare(vectors[pairs["source_row"].to_numpy()], similarity)
    own = prepare(vectors[pairs["target_row"].to_numpy()], similarity)
    others = prepare(vectors[distractors["target_row"].to_numpy()], similarity)
    indices = distractors["target_index"].to_numpy()
    gold = pairs["target_index"].to_numpy()
    near = paired(sources, own, similarity)
    nearest = gold.copy()
    for rows, found in blocks(sources, others, similarity):
        if not len(indices):
            break
        # the gold target has the similarity `near`; in a block its last digit may differ
        found[gold[rows][:, None] == indices[None, :]] = -np.inf
        best = found.argmax(axis=1)
        top = found[np.arange(len(best)), best]
        wins = (top > near[rows]) | ((top == near[rows]) & (indices[best] < gold[rows]))
        nearest[rows] = np.where(wins, indices[best], gold[rows])
    return nearest


def _metric(name: str, gold: np.ndarray, nearest: np.ndarray) -> float:
    from sklearn import metrics

    if name == "accuracy":
        return float(np.mean(gold == nearest))
    function = getattr(metrics, f"{name}_score")
    return float(function(gold, nearest, zero_division=0, average="weighted"))
