"""Outcomes of Clustering: whether a document's k-means cluster is mostly of its own label.

The official score is the V-measure of mini-batch k-means, a mean over bootstraps and label
levels (mteb/abstasks/clustering.py). It is a statistic of the set. A pool that is the whole task
repeats mteb's bootstraps.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from mteblite.kmeans import distinct_rows, kmeans
from mteblite.outcomes.cells import cells_of, facts_of, mean_of_cells
from mteblite.outcomes.pool_score import PoolScore
from mteblite.pools.pool import Pool
from mteblite.seeds import stable_seed
from mteblite.task_types.clustering.pool import bootstrap_rows, fresh_rng, label_levels
from mteblite.task_types.hidden_labels import LEVEL_SEPARATOR

METRICS = ("v_measure", "v_measure_std", "ami", "ami_std")
SPREAD = "_std"


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Return per document the share of label levels where its cluster's majority is its label.

    The similarity has no effect.
    """
    names = pool.metric_names
    observations = observe(pool, vectors)
    outcomes = np.empty(len(pool.items))
    for rows in cells_of(pool.items):
        outcomes[rows] = _majority_hits(observations[rows], pool.items.iloc[rows], pool.meta)
    values: dict[str, list[float]] = {name: [] for name in names}
    for documents, rng in _bootstrap_cells(pool):
        if pool.meta["protocol"].get("legacy"):
            scores = _by_set(vectors, documents, pool.meta["protocol"], names)
        else:
            scores = _bootstrapped(vectors, documents, rng, pool.meta["protocol"], names)
        for name in names:
            values[name].append(scores[name])
    means = {name: mean_of_cells(scores) for name, scores in values.items()}
    return PoolScore.of(pool, outcomes, means, observations)


def observe(pool: Pool, vectors: np.ndarray) -> np.ndarray:
    """Return the (n_items, dim) vectors of the documents, in the order of the items."""
    rows = pool.frames["documents"].set_index("item_id").loc[pool.items["item_id"], "text_row"]
    return np.asarray(vectors[rows.to_numpy()], dtype=np.float32)


def set_statistic(observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray) -> float:
    """Return the V-measure of k-means on a few documents, a mean over label levels and cells.

    There are as many clusters as labels in the set. The weights are those of k-means and of the
    V-measure. Where every document has another label the V-measure is 1 for every model. It is NaN
    where a cell has fewer than two labels.
    """
    weights = np.asarray(weights, dtype=float)
    scores = []
    for levels in facts_of(items, _levels_of_cells):
        values = []
        for rows, codes, seed in levels:
            clusters = _cluster_few(observations[rows], int(codes.max()) + 1, seed, weights[rows])
            values.append(weighted_v_measure(codes, clusters, weights[rows]))
        scores.append(float(np.mean(values)) if values else float("nan"))
    return mean_of_cells(scores)


Level = tuple[np.ndarray, np.ndarray, int]
"""Rows of the documents that have a label at a level, their label codes, seed of k-means."""


def _levels_of_cells(items: pd.DataFrame) -> list[list[Level]]:
    """Return per cell the label levels with at least two labels."""
    found = []
    ids = items["item_id"].to_numpy().astype(str)
    for rows in cells_of(items):
        # k-means depends on the order of rows: sorted ids make it independent of the caller.
        rows = rows[np.argsort(ids[rows], kind="stable")]
        seed, levels = _seed(*ids[rows]), []
        for labels in _strata_levels(items["stratum"].iloc[rows]):
            here = np.array([label is not None for label in labels])
            known = [label for label in labels if label is not None]
            codes = np.unique(known, return_inverse=True)[1]
            if codes.max(initial=0) >= 1:
                levels.append((rows[here], codes, seed))
        found.append(levels)
    return found


def weighted_v_measure(labels: np.ndarray, clusters: np.ndarray, weights: np.ndarray) -> float:
    """Return the V-measure of a weighted contingency table; sklearn's where weights are equal.

    Source: Rosenberg and Hirschberg 2007, harmonic mean of homogeneity and completeness.

    Args:
        labels: (n,) codes from 0.
        clusters: (n,) codes from 0.
        weights: (n,) positive.
    """
    table = np.zeros((labels.max() + 1, clusters.max() + 1))
    np.add.at(table, (labels, clusters), weights / weights.sum())
    joint, by_label, by_cluster = (_entropy(m) for m in (table, table.sum(1), table.sum(0)))
    shared = by_label + by_cluster - joint
    homogeneity = shared / by_label if by_label > 1e-15 else 1.0
    completeness = shared / by_cluster if by_cluster > 1e-15 else 1.0
    total = homogeneity + completeness
    return float(2 * homogeneity * completeness / total) if total > 1e-15 else 0.0


def _entropy(masses: np.ndarray) -> float:
    positive = masses[masses > 0]
    return float(-np.sum(positive * np.log(positive)))


def _strata_levels(strata: pd.Series) -> list[list[str | None]]:
    paths = [str(stratum).split(LEVEL_SEPARATOR) for stratum in strata]
    depth = max(map(len, paths))
    return [
        [path[level] if level < len(path) else None for path in paths] for level in range(depth)
    ]


def _majority_hits(vectors: np.ndarray, items: pd.DataFrame, meta: dict[str, Any]) -> np.ndarray:
    """Return the (n,) share of levels whose cluster majority (ties: first by name) is the label."""
    hits, levels = np.zeros(len(items)), np.zeros(len(items))
    for labels in _strata_levels(items["stratum"]):
        here = np.flatnonzero([label is not None for label in labels])
        names, codes = np.unique([labels[row] for row in here], return_inverse=True)
        seed = _seed(meta["seed"], meta["task"], items["split"].iloc[0], items["hf_subset"].iloc[0])
        clusters = _cluster(vectors[here], len(names), seed)
        table = np.zeros((clusters.max() + 1, len(names)))
        np.add.at(table, (clusters, codes), 1)
        hits[here] += table.argmax(axis=1)[clusters] == codes
        levels[here] += 1
    return hits / np.maximum(levels, 1)


def _seed(*keys: str | int) -> int:
    return stable_seed(*keys, "k-means") % 2**32


def _cluster(vectors: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # a model may map several texts to one vector: fewer distinct vectors than clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(min(n_clusters, len(vectors)), n_init=1, random_state=seed)
        return np.asarray(model.fit_predict(vectors))


def _cluster_few(
    vectors: np.ndarray, n_clusters: int, seed: int, weights: np.ndarray
) -> np.ndarray:
    """Return the clusters of the documents of a selection, by the best of several starts.

    With one start, local optima cause much of the difference between models on a few documents.
    """
    first, code = distinct_rows(vectors)
    if len(first) <= n_clusters:
        return code
    mass = np.bincount(code, weights=weights)
    return kmeans(vectors[first], mass, n_clusters, np.random.default_rng(seed))[1][code]


def _bootstrap_cells(pool: Pool) -> Iterator[tuple[pd.DataFrame, random.Random]]:
    """Yield the documents of each cell in mteb's order, and the generator of its bootstraps."""
    frame = pool.frames["documents"]
    by_cell = {
        (str(split), str(subset)): part.sort_values("position")
        for (split, subset), part in frame.groupby(["split", "hf_subset"], sort=True)
    }
    if pool.meta.get("replay"):
        rng = fresh_rng(pool.meta["protocol"])
        for cell in pool.meta["replay"]:
            if cell["n_sampled"] is not None:
                rng.sample(range(cell["n_total"]), k=cell["n_sampled"])
            yield by_cell[cell["split"], cell["hf_subset"]], rng
        return
    for key, documents in by_cell.items():
        seed = stable_seed(pool.meta["seed"], pool.meta["task"], *key, "bootstraps")
        yield documents, random.Random(seed)


def _bootstrapped(
    vectors: np.ndarray,
    documents: pd.DataFrame,
    rng: random.Random,
    protocol: dict[str, Any],
    names: list[str],
) -> dict[str, float]:
    """Return the mean of each metric over levels and bootstraps, as mteb computes it."""
    from sklearn.cluster import MiniBatchKMeans

    labels = [json.loads(value) for value in documents["labels"]]
    rows = documents["text_row"].to_numpy()
    scores: dict[str, list[float]] = {_base(name): [] for name in names}
    for named, clustered in label_levels(labels, protocol):
        here, named = vectors[rows[clustered]], named[clustered]
        model = MiniBatchKMeans(
            n_clusters=np.unique(named).size,
            batch_size=int(protocol.get("k_mean_batch_size", 512)),
            init="k-means++",
            n_init=1,
            random_state=int(protocol.get("seed", 42)),
        )
        for drawn in bootstrap_rows(rng, len(here), protocol):
            clusters = model.fit_predict(here[drawn])
            for base in scores:
                scores[base].append(_agreement(base, named[drawn], clusters))
    return _means_and_spreads(names, scores)


def _by_set(
    vectors: np.ndarray, documents: pd.DataFrame, protocol: dict[str, Any], names: list[str]
) -> dict[str, float]:
    """Return the mean of each metric over the sets of a legacy task.

    Source: mteb/abstasks/clustering_legacy.py, where a set with one label has the score 1.
    """
    from sklearn.cluster import MiniBatchKMeans

    scores: dict[str, list[float]] = {_base(name): [] for name in names}
    for _, members in documents.groupby("set", sort=True):
        labels = [json.loads(value)[0] for value in members["labels"]]
        clusters = labels
        if len(set(labels)) > 1:
            model = MiniBatchKMeans(
                n_clusters=len(set(labels)),
                batch_size=int(protocol.get("k_mean_batch_size", 500)),
                n_init="auto",
                random_state=int(protocol.get("seed", 42)),
            )
            clusters = model.fit(vectors[members["text_row"].to_numpy()]).labels_.tolist()
        for base in scores:
            scores[base].append(_agreement(base, labels, clusters))
    return _means_and_spreads(names, scores)


def _agreement(metric: str, labels: Any, clusters: Any) -> float:
    from sklearn import metrics

    if metric == "ami":
        return float(metrics.adjusted_mutual_info_score(labels, clusters))
    return float(metrics.v_measure_score(labels, clusters))


def _means_and_spreads(names: list[str], scores: dict[str, list[float]]) -> dict[str, float]:
    """Return each metric over levels and bootstraps: the mean, or for `<metric>_std` the SD."""
    return {
        name: float((np.std if name.endswith(SPREAD) else np.mean)(scores[_base(name)]))
        for name in names
    }


def _base(name: str) -> str:
    return name.removesuffix(SPREAD)
