"""Outcomes of Retrieval and Reranking: the main metric of one query.

Metrics are pytrec_eval's, as in mteb/_evaluators/retrieval_metrics.py: linear gain, scores in
float32, ties by document id descending, and mteb's rounding of a cell's mean to 5 decimals
(which is why the mean outcome may differ from the pool score by up to 5e-6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from mteblite_assets.outcomes.cells import cells_of, mean_of_cells, unknown_metric
from mteblite_assets.outcomes.scoring import PoolScore
from mteblite_assets.outcomes.similarity import blocks, paired, prepare
from mteblite_assets.pools.pool import Pool
from mteblite_assets.pools.retrieval import SUBQUERIES

MEASURES = {
    "ndcg": "ndcg_cut",
    "map": "map_cut",
    "recall": "recall",
    "precision": "P",
    "hit_rate": "success",
}
"""mteb's metric `<name>_at_<k>` to pytrec_eval's measure."""

AREAS = ("auprc", "auprc_trapezoid")
"""Area under the precision-recall curve over all (query, candidate) pairs of a cell: average
precision as scikit-learn defines it, and the trapezoidal area, which interpolates and is larger."""

Ranking = dict[str, float]


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Return the main metric of each query in [0, 1], and the score.

    Args:
        pool: the pool.
        vectors: (n_texts, dim).
        similarity: the model's own, by which mteb searches.

    Raises:
        ValueError: a metric is none of `<MEASURES or mrr>_at_<k>`, `accuracy` or AREAS.
    """
    main = str(pool.meta["main_metric"])
    extra = [str(name) for name in pool.meta.get("metrics", [])]
    names = [name for name in dict.fromkeys([main, *extra]) if name not in AREAS]
    parsed = {name: _parse(name, main, str(pool.meta["task"])) for name in names}
    depth = max(k for _, k in parsed.values())
    rankings = rank(pool, vectors, depth, similarity)
    qrels = _judgements(pool)
    values = _values(parsed, pool.items["item_id"].tolist(), rankings, qrels)
    cells = list(cells_of(pool.items))
    means = {
        name: mean_of_cells([_cell_mean(name, column[rows]) for rows in cells])
        for name, column in values.items()
    }
    if set(AREAS).intersection(extra):
        means.update(_areas(pool, rank(pool, vectors, None, similarity), qrels))
    return PoolScore(
        outcomes=values[main],
        pool_score=means[main],
        metrics={name: means[name] for name in extra},
    )


def rank(
    pool: Pool, vectors: np.ndarray, depth: int | None, similarity: str = "cosine"
) -> dict[str, Ranking]:
    """Return document scores by item: the best `depth` candidates and all that tie with the last.

    Sub-queries of an item are merged by the larger score, as mteb's `max_over_subqueries`.

    Args:
        pool: the pool.
        vectors: (n_texts, dim).
        depth: how many are needed; None: all candidates.
        similarity: the model's own, as mteb searches by it.
    """
    protocol = pool.meta["protocol"]
    skipped = bool(protocol.get("skip_first_result"))
    # one more for a document that is its own query, one more for a first result to skip
    wanted = None if depth is None else depth + 2
    merged: dict[str, Ranking] = {}
    for item, query, documents, scores in _candidates(pool, vectors, similarity):
        ranking = _best(documents, scores, wanted)
        if protocol.get("ignore_identical_ids"):
            ranking.pop(query, None)
        if skipped:
            ranking = dict(sorted(ranking.items(), key=lambda hit: hit[1], reverse=True)[1:])
        into = merged.setdefault(item, {})
        for document, score in ranking.items():
            into[document] = max(score, into.get(document, score))
    return merged


def _candidates(
    pool: Pool, vectors: np.ndarray, similarity: str
) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield item, query id, (n,) document ids and (n,) float32 similarities of every query."""
    own = {key: part["doc_id"].to_numpy() for key, part in _by_query(pool.frames["candidates"])}
    for key, queries in pool.frames["queries"].groupby(["split", "hf_subset"], sort=True):
        documents = pool.frames["documents"]
        here = (documents["split"] == key[0]) & (documents["hf_subset"] == key[1])
        documents = documents[here.to_numpy()]
        ids, shared = documents["doc_id"].to_numpy(), documents["shared"].to_numpy(dtype=bool)
        compared = prepare(vectors[documents["document_row"].to_numpy()], similarity)
        row_of = pd.Series(np.arange(len(ids)), index=ids)
        sources = prepare(vectors[queries["query_row"].to_numpy()], similarity)
        names = list(zip(queries["item_id"], queries["query_id"], strict=True))
        lists = [row_of.loc[own[name]].to_numpy() if name in own else _NONE for name in names]
        scores = _listed(sources, compared, lists, similarity)
        for rows, found in blocks(sources, compared[shared], similarity):
            for offset, number in enumerate(range(rows.start, rows.stop)):
                yield (
                    *names[number],
                    np.concatenate([ids[shared], ids[lists[number]]]),
                    np.concatenate([found[offset], scores[number]]),
                )


_NONE = np.array([], dtype=np.int64)


def _by_query(frame: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    for key, part in frame.groupby(["item_id", "query_id"], sort=False):
        item, query = key
        yield (str(item), str(query)), part


def _listed(
    sources: np.ndarray, documents: np.ndarray, lists: list[np.ndarray], similarity: str
) -> list[np.ndarray]:
    """Return the float32 similarities of each source to the documents of its own list."""
    sizes = [len(rows) for rows in lists]
    first = np.repeat(np.arange(len(lists)), sizes)
    second = np.concatenate(lists) if lists else _NONE
    return np.split(paired(sources, documents, similarity, first, second), np.cumsum(sizes)[:-1])


def _best(documents: np.ndarray, scores: np.ndarray, number: int | None) -> Ranking:
    if number is not None and len(scores) > number:
        last = np.partition(scores, len(scores) - number)[len(scores) - number]
        kept = scores >= last
        documents, scores = documents[kept], scores[kept]
    return dict(zip(documents.tolist(), scores.tolist(), strict=True))


def _judgements(pool: Pool) -> dict[str, dict[str, int]]:
    """Return judgements by item; sub-queries of an item share theirs, the last one's are taken."""
    qrels: dict[str, dict[str, int]] = {}
    for (item, _), part in sorted(_by_query(pool.frames["qrels"]), key=lambda pair: pair[0]):
        qrels[item] = dict(zip(part["doc_id"], map(int, part["relevance"]), strict=True))
    return qrels


def _parse(name: str, main: str, task: str) -> tuple[str, int]:
    """Return pytrec_eval's measure (or `mrr`) and the cut k of a metric name."""
    base, _, cut = name.removeprefix(SUBQUERIES).rpartition("_at_")
    if name == "accuracy":
        return "recall", 1
    same_grain = name.startswith(SUBQUERIES) == main.startswith(SUBQUERIES)
    if not cut.isdigit() or base not in (*MEASURES, "mrr") or not same_grain:
        known = [f"{base}_at_<k>" for base in (*MEASURES, "mrr")]
        raise unknown_metric(task, name, [*known, "accuracy", *AREAS])
    return MEASURES.get(base, base), int(cut)


def _values(
    parsed: Mapping[str, tuple[str, int]],
    items: list[str],
    rankings: Mapping[str, Ranking],
    qrels: dict[str, dict[str, int]],
) -> dict[str, np.ndarray]:
    """Return the (n_items,) values of each metric; a query without candidates has 0."""
    import pytrec_eval

    measures = {f"{measure}.{k}" for measure, k in parsed.values() if measure != "mrr"}
    found = {}
    if measures:
        found = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(dict(rankings))
    values = {}
    for name, (measure, k) in parsed.items():
        if measure == "mrr":
            column = [_reciprocal_rank(rankings[item], qrels[item], k) for item in items]
        else:
            column = [found.get(item, {}).get(f"{measure}_{k}", 0.0) for item in items]
        values[name] = np.array(column, dtype=float)
    return values


def _reciprocal_rank(ranking: Ranking, judged: Mapping[str, int], k: int) -> float:
    """Return 1 / rank of the first relevant document among the best k, ties by id descending."""
    hits = sorted(ranking.items(), key=lambda hit: (hit[1], hit[0]), reverse=True)[:k]
    return next((1 / (r + 1) for r, (d, _) in enumerate(hits) if judged.get(d, 0) > 0), 0.0)


def _cell_mean(name: str, values: np.ndarray) -> float:
    mean = sum(values.tolist()) / len(values)
    return mean if "mrr_at_" in name else round(mean, 5)


def _areas(
    pool: Pool, rankings: Mapping[str, Ranking], qrels: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    from sklearn import metrics

    items = pool.items["item_id"].tolist()
    precise, trapezoid = [], []
    for rows in cells_of(pool.items):
        hits = [
            (s, qrels[items[r]].get(d, 0) > 0) for r in rows for d, s in rankings[items[r]].items()
        ]
        scores, labels = np.array([s for s, _ in hits]), np.array([label for _, label in hits])
        if not labels.any():
            return dict.fromkeys(AREAS, float("nan"))
        precise.append(float(metrics.average_precision_score(labels, scores)))
        precision, recall, _ = metrics.precision_recall_curve(labels, scores)
        trapezoid.append(float(metrics.auc(recall, precision)))
    return dict(zip(AREAS, (mean_of_cells(precise), mean_of_cells(trapezoid)), strict=True))
