"""Outcomes of Summarization: the Spearman correlation of human and model judgement per document.

A machine summary's score is its largest cosine to the document's human summaries
(mteb/_evaluators/text/summarization_evaluator.py). Documents whose human scores, cosines or dot
products are all equal have no outcome (NaN), as mteb skips them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite_assets.outcomes.cells import cells_of, mean_of_cells, unknown_metric
from mteblite_assets.outcomes.scoring import PoolScore
from mteblite_assets.outcomes.similarity import unit_rows
from mteblite_assets.pools.pool import Pool

METRICS = (
    "cosine_spearman",
    "cosine_pearson",
    "spearman",
    "pearson",
    "dot_spearman",
    "dot_pearson",
)


def score_pool(pool: Pool, vectors: np.ndarray) -> PoolScore:
    """Return per document the correlation in [-1, 1], NaN where undefined, and the score.

    Raises:
        ValueError: the main metric is none of METRICS.
    """
    names = [str(pool.meta["main_metric"]), *pool.meta.get("metrics", [])]
    for name in names:
        if name not in METRICS:
            raise unknown_metric(str(pool.meta["task"]), name, METRICS)
    table = _correlations(pool, vectors, names)
    means = {
        name: mean_of_cells([_mean(table[name].to_numpy()[rows]) for rows in cells_of(pool.items)])
        for name in names
    }
    return PoolScore(
        outcomes=table[names[0]].to_numpy(),
        pool_score=means[names[0]],
        metrics={name: means[name] for name in names[1:]},
    )


def _mean(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(np.mean(defined)) if len(defined) else float("nan")


def _correlations(pool: Pool, vectors: np.ndarray, names: list[str]) -> pd.DataFrame:
    """Return one row per item of the pool, one column per metric."""
    from scipy import stats

    unit = unit_rows(vectors)
    human = {
        item: frame["text_row"].to_numpy()
        for item, frame in pool.frames["human"].groupby("item_id")
    }
    machine = dict(iter(pool.frames["machine"].groupby("item_id")))
    found: dict[str, list[float]] = {name: [] for name in names}
    for item in pool.items["item_id"]:
        rows = machine[item]["text_row"].to_numpy()
        relevance = machine[item]["relevance"].to_numpy(dtype=float)
        scores = {
            "cosine": (unit[rows] @ unit[human[item]].T).astype(np.float32).max(axis=1),
            "dot": _dots(vectors[rows], vectors[human[item]]),
        }
        skipped = any(len(set(v.tolist())) == 1 for v in (relevance, *scores.values()))
        for name in names:
            similarity, _, kind = name.rpartition("_")
            function = stats.spearmanr if kind == "spearman" else stats.pearsonr
            values = scores[similarity or "cosine"]
            found[name].append(np.nan if skipped else float(function(relevance, values)[0]))
    return pd.DataFrame(found)


def _dots(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    wide = first.astype(np.float64) @ second.astype(np.float64).T
    return np.asarray(wide.astype(np.float32).max(axis=1))
