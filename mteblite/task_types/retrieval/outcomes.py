"""Outcomes of Retrieval and Reranking: the main metric of one query (`metrics`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mteblite.outcomes.cells import cells_of, mean_of_cells
from mteblite.outcomes.pool_score import PoolScore
from mteblite.outcomes.similarity import blocks, paired, prepare
from mteblite.pools.pool import Pool
from mteblite.task_types.retrieval.metrics import TOP_K, Ranking, cell_score, depth_of, query_values


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Return the main metric of each query in [0, 1], and the score.

    mteb searches by the model's own similarity.
    """
    names = pool.metric_names
    protocol = pool.meta["protocol"]
    # mteb drops the query itself from its best documents afterwards
    top_k = int(protocol.get("top_k", TOP_K)) - bool(protocol.get("ignore_identical_ids"))
    found = rank(pool, vectors, depth_of(names, top_k), similarity)
    judged = _judgements(pool)
    items = pool.items["item_id"].tolist()
    rankings, qrels = [found[item] for item in items], [judged[item] for item in items]
    values = query_values(names, rankings, qrels)
    scores: dict[str, list[float]] = {name: [] for name in names}
    for rows in cells_of(pool.items):
        own = [rankings[row] for row in rows], [qrels[row] for row in rows]
        for name in names:
            column = values.get(name)
            scores[name].append(
                cell_score(name, None if column is None else column[rows], *own, top_k)
            )
    means = {name: mean_of_cells(cells) for name, cells in scores.items()}
    return PoolScore.of(pool, values[names[0]], means)


def rank(
    pool: Pool, vectors: np.ndarray, depth: int | None, similarity: str = "cosine"
) -> dict[str, Ranking]:
    """Return document scores by item: the best `depth` candidates and all that tie with the last.

    Sub-queries of an item are merged by the larger score, as in mteb's `max_over_subqueries`.

    Args:
        pool: the pool.
        vectors: (n_texts, dim).
        depth: how many are needed; None: all candidates.
        similarity: the model's own, by which mteb searches.
    """
    protocol = pool.meta["protocol"]
    # one more for a document that is its own query, one more for a skipped first result
    wanted = None if depth is None else depth + 2
    merged: dict[str, Ranking] = {}
    for item, query, documents, scores in _candidates(pool, vectors, similarity):
        ranking = _best(documents, scores, wanted)
        if protocol.get("ignore_identical_ids"):
            ranking.pop(query, None)
        if protocol.get("skip_first_result"):
            ranking = dict(sorted(ranking.items(), key=lambda hit: hit[1], reverse=True)[1:])
        into = merged.setdefault(item, {})
        for document, score in ranking.items():
            into[document] = max(score, into.get(document, score))
    return merged


def _candidates(
    pool: Pool, vectors: np.ndarray, similarity: str
) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield item, query id, (n,) document ids and (n,) float32 similarities of every query."""
    queries, documents = pool.frames["queries"], pool.frames["documents"]
    names = list(zip(queries["item_id"].tolist(), queries["query_id"].tolist(), strict=True))
    listed, bounds = _own_lists(pool, names)
    cells = documents.groupby(["split", "hf_subset"]).indices
    for key, indices in sorted(queries.groupby(["split", "hf_subset"]).indices.items()):
        numbers = np.asarray(indices, dtype=np.int64)
        here = documents.iloc[cells.get(key, _NONE)]
        ids, shared = here["doc_id"].to_numpy(object), here["shared"].to_numpy(dtype=bool)
        compared = prepare(vectors[here["document_row"].to_numpy()], similarity)
        sources = prepare(vectors[queries["query_row"].to_numpy()[numbers]], similarity)
        sizes = bounds[numbers + 1] - bounds[numbers]
        found = [listed[bounds[n] : bounds[n + 1]] for n in numbers]
        rows = pd.Index(ids).get_indexer(np.concatenate(found)).astype(np.int64)
        if (rows < 0).any():
            raise ValueError(
                f"{pool.meta['task']}: a candidate of {key} is not among the pool's documents: "
                "its files do not fit together; draw the pool again"
            )
        first = np.repeat(np.arange(len(numbers)), sizes)
        values = paired(sources, compared, similarity, first, rows)
        ends = np.cumsum(sizes)
        shared_rows = np.flatnonzero(shared)
        for part, block in blocks(sources, compared[shared], similarity):
            for offset, place in enumerate(range(part.start, part.stop)):
                own = slice(ends[place] - sizes[place], ends[place])
                yield (
                    *names[numbers[place]],
                    ids[np.concatenate([shared_rows, rows[own]])],
                    np.concatenate([block[offset], values[own]]),
                )


_NONE = np.array([], dtype=np.int64)


def _own_lists(pool: Pool, names: list[tuple[str, str]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the document ids on the lists of all queries, and where each query's list begins."""
    candidates = pool.frames["candidates"]
    number = {name: n for n, name in enumerate(names)}
    keys = zip(candidates["item_id"].tolist(), candidates["query_id"].tolist(), strict=True)
    owners = np.array([number[key] for key in keys], dtype=np.int64)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(len(names) + 1))
    return candidates["doc_id"].to_numpy(object)[order], bounds


def _best(documents: np.ndarray, scores: np.ndarray, number: int | None) -> Ranking:
    if number is not None and len(scores) > number:
        last = np.partition(scores, len(scores) - number)[len(scores) - number]
        kept = scores >= last
        documents, scores = documents[kept], scores[kept]
    return dict(zip(documents.tolist(), scores.tolist(), strict=True))


def _judgements(pool: Pool) -> dict[str, dict[str, int]]:
    """Return judgements by item; all sub-queries of an item have the judgements of the last."""
    frame = pool.frames["qrels"]
    last: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    columns = (frame[name].tolist() for name in ("item_id", "query_id", "doc_id", "relevance"))
    for item, query, document, relevance in zip(*columns, strict=True):
        if query > last.get(item, ""):
            last[item], qrels[item] = query, {}
        if query == last[item]:
            qrels[item][document] = int(relevance)
    return qrels
