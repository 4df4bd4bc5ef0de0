"""Metrics of rankings, per query and per cell, as mteb computes them.

pytrec_eval computes the values per query: linear gain, scores in float32, ties by document id
descending. A cell's mean is rounded to 5 decimals, as in mteb/_evaluators/retrieval_metrics.py. The
mean outcome may therefore differ from the pool score by up to 5e-6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mteblite.outcomes.areas import AREAS, precision_recall_area
from mteblite.task_types.retrieval.abstention import confidence, normalized_area
from mteblite.task_types.retrieval.metric_names import SUBQUERIES

MEASURES = {
    "ndcg": "ndcg_cut",
    "map": "map_cut",
    "recall": "recall",
    "precision": "P",
    "hit_rate": "success",
}
"""mteb's metric `<name>_at_<k>` to pytrec_eval's measure."""

TOP_K = 1000
"""How many documents mteb keeps per query, unless the task sets another number."""

Ranking = dict[str, float]
Judgements = Mapping[str, int]


def depth_of(names: Sequence[str], top_k: int) -> int | None:
    """Return how many of the best documents these metrics need; None: all."""
    if set(AREAS).intersection(names):
        return None
    return max(top_k if "nauc_" in name else _cut(name) for name in names)


def query_values(
    names: Sequence[str], rankings: Sequence[Ranking], qrels: Sequence[Judgements]
) -> dict[str, np.ndarray]:
    """Return the (n_queries,) values from which each metric is computed.

    Args:
        names: metric names; areas have no value per query and are left out.
        rankings: document scores per query; a query without candidates has the value 0.
        qrels: relevance by document, per query.
    """
    import pytrec_eval

    wanted = {name: _per_query(name) for name in names if name not in AREAS}
    keys = [str(number) for number in range(len(qrels))]
    measures = {f"{m}.{k}" for m, k in wanted.values() if m != "mrr"}
    found: dict[str, dict[str, float]] = {}
    if measures:
        evaluator = pytrec_eval.RelevanceEvaluator(
            # pytrec_eval crashes on a query with only negative judgements, which equal 0 here
            {
                key: {document: max(relevance, 0) for document, relevance in judged.items()}
                for key, judged in zip(keys, qrels, strict=True)
            },
            measures,
        )
        found = evaluator.evaluate(dict(zip(keys, rankings, strict=True)))
    columns = {}
    for name, (measure, k) in wanted.items():
        columns[name] = np.array(
            [
                _reciprocal_rank(ranking, judged, k)
                if measure == "mrr"
                else found.get(key, {}).get(f"{measure}_{k}", 0.0)
                for key, ranking, judged in zip(keys, rankings, qrels, strict=True)
            ],
            dtype=float,
        )
    return columns


def cell_score(
    name: str,
    values: np.ndarray | None,
    rankings: Sequence[Ranking],
    qrels: Sequence[Judgements],
    top_k: int,
) -> float:
    """Return a metric of one cell.

    Args:
        name: the metric.
        values: (n,) values of its queries, None for an area.
        rankings: document scores per query.
        qrels: relevance by document, per query.
        top_k: how many documents a confidence uses.
    """
    if values is None:
        return _area(name, rankings, qrels)
    if "nauc_" in name:
        kind = name.rpartition("_")[2]
        scores = [list(ranking.values()) for ranking in rankings]
        return normalized_area(confidence(scores, kind, top_k), values)
    mean = sum(values.tolist()) / len(values)
    return mean if "mrr_at_" in name else round(mean, 5)


def _per_query(name: str) -> tuple[str, int]:
    """Return pytrec_eval's measure (or `mrr`) and the cut k behind a metric."""
    bare = name.removeprefix(SUBQUERIES).removeprefix("nauc_")
    if bare == "accuracy":
        return "recall", 1
    base = bare.partition("_at_")[0]
    return MEASURES.get(base, base), _cut(name)


def _cut(name: str) -> int:
    digits = name.rpartition("_at_")[2].partition("_")[0]
    return int(digits) if digits.isdigit() else 1


def _reciprocal_rank(ranking: Ranking, judged: Judgements, k: int) -> float:
    """Return 1 / rank of the first relevant document among the best k, ties by id descending."""
    hits = sorted(ranking.items(), key=lambda hit: (hit[1], hit[0]), reverse=True)[:k]
    return next((1 / (r + 1) for r, (d, _) in enumerate(hits) if judged.get(d, 0) > 0), 0.0)


def _area(name: str, rankings: Sequence[Ranking], qrels: Sequence[Judgements]) -> float:
    scores = np.array([s for ranking in rankings for s in ranking.values()])
    labels = np.array(
        [
            judged.get(document, 0) > 0
            for ranking, judged in zip(rankings, qrels, strict=True)
            for document in ranking
        ]
    )
    return precision_recall_area(name, labels, scores)
