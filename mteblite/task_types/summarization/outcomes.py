"""Outcomes of Summarization: the Spearman correlation of human and model judgement per document.

A machine summary's score is its largest cosine to the document's human summaries
(mteb/_evaluators/text/summarization_evaluator.py). Documents whose human scores, cosines or dot
products are all equal have no outcome (NaN), as mteb skips them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.outcomes.cells import cells_of, mean_of_cells
from mteblite.outcomes.pool_score import PoolScore
from mteblite.outcomes.similarity import blocks, prepare
from mteblite.pools.pool import Pool

METRICS = (
    "cosine_spearman",
    "cosine_pearson",
    "spearman",
    "pearson",
    "dot_spearman",
    "dot_pearson",
)


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Return per document the correlation in [-1, 1], NaN where undefined, and the score.

    The metrics `spearman` and `pearson` use the model's own similarity.
    """
    names = pool.metric_names
    table = _correlations(pool, vectors, names, similarity)
    cells = cells_of(pool.items)
    means = {
        name: mean_of_cells([_mean(table[name].to_numpy()[rows]) for rows in cells])
        for name in names
    }
    return PoolScore.of(pool, table[names[0]].to_numpy(), means)


def _mean(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(np.mean(defined)) if len(defined) else float("nan")


def _correlations(pool: Pool, vectors: np.ndarray, names: list[str], own: str) -> pd.DataFrame:
    """Return one row per item of the pool and one column per metric.

    A metric whose name has no similarity uses `own`.
    """
    from scipy import stats

    kinds = sorted({"cosine", "dot", own})
    prepared = {
        kind: vectors if kind in ("cosine", "dot") else prepare(vectors, kind) for kind in kinds
    }
    human = {
        item: frame["text_row"].to_numpy()
        for item, frame in pool.frames["human"].groupby("item_id")
    }
    machine = dict(iter(pool.frames["machine"].groupby("item_id")))
    found: dict[str, list[float]] = {name: [] for name in names}
    for item in pool.items["item_id"]:
        rows = machine[item]["text_row"].to_numpy()
        relevance = machine[item]["relevance"].to_numpy(dtype=float)
        references = human[item]
        scores = {kind: _best(rows, references, prepared[kind], kind) for kind in kinds}
        skipped = any(
            len(set(v.tolist())) == 1 for v in (relevance, scores["cosine"], scores["dot"])
        )
        for name in names:
            similarity, _, kind = name.rpartition("_")
            function = stats.spearmanr if kind == "spearman" else stats.pearsonr
            values = scores[similarity or own]
            found[name].append(np.nan if skipped else float(function(relevance, values)[0]))
    return pd.DataFrame(found)


def _best(rows: np.ndarray, references: np.ndarray, vectors: np.ndarray, kind: str) -> np.ndarray:
    """Return each row's largest similarity to a reference.

    Cosine and dot are float32 products of one row, as in mteb: their last digit orders nearly
    equal summaries, and static models have many of these.
    """
    if kind not in ("cosine", "dot"):
        found = [block.max(axis=1) for _, block in blocks(vectors[rows], vectors[references], kind)]
        return np.concatenate(found)
    import torch

    human = torch.from_numpy(np.ascontiguousarray(vectors[references], dtype=np.float32))
    machine = torch.from_numpy(np.ascontiguousarray(vectors[rows], dtype=np.float32))
    if kind == "cosine":
        human = torch.nn.functional.normalize(human, p=2, dim=1)
    best = []
    for row in machine.unsqueeze(1):
        one = torch.nn.functional.normalize(row, p=2, dim=1) if kind == "cosine" else row
        best.append(float(torch.mm(one, human.T).max()))
    return np.array(best)
