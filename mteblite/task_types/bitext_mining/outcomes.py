"""Outcomes of BitextMining: 1 if the gold target is the nearest of target and distractors.

The official score, the support-weighted F1 over targets, is at most the accuracy, because a
target that attracts other sources loses precision (mteb/abstasks/text/bitext_mining.py).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.outcomes.cells import align, cells_of, mean_of_cells
from mteblite.outcomes.pool_score import PoolScore
from mteblite.outcomes.similarity import blocks, paired, prepare
from mteblite.pools.pool import Pool

METRICS = ("f1", "accuracy", "precision", "recall")


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Return outcomes 0 or 1, and the score.

    Args:
        pool: the pool.
        vectors: (n_texts, dim).
        similarity: the model's own, by which mteb searches.
    """
    names = pool.metric_names
    pairs = align(pool.frames["pairs"], pool.items)
    gold = pairs["target_index"].to_numpy()
    outcomes = np.empty(len(pairs))
    values: dict[str, list[float]] = {name: [] for name in names}
    for rows in cells_of(pool.items):
        nearest = _nearest(pairs.iloc[rows], _distractors(pool, rows), vectors, similarity)
        outcomes[rows] = nearest == gold[rows]
        for name in names:
            values[name].append(_metric(name, gold[rows], nearest))
    means = {name: mean_of_cells(scores) for name, scores in values.items()}
    return PoolScore.of(pool, outcomes, means)


def _distractors(pool: Pool, rows: np.ndarray) -> pd.DataFrame:
    cell, frame = pool.items.iloc[rows[0]], pool.frames["distractors"]
    here = (frame["split"] == cell["split"]) & (frame["hf_subset"] == cell["hf_subset"])
    return frame[here.to_numpy()]


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
        # the gold target is judged by `near`: the same vector must not beat itself by a last digit
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
    functions = {
        "f1": metrics.f1_score,
        "precision": metrics.precision_score,
        "recall": metrics.recall_score,
    }
    return float(functions[name](gold, nearest, zero_division=0, average="weighted"))
