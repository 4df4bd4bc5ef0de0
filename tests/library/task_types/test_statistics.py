"""Set statistics against scikit-learn and scipy, and metrics on cases done by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics

from mteblite.pools.corpus import Corpus
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.clustering import outcomes as clustering
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.pair_classification import outcomes as pair_classification
from mteblite.task_types.retrieval import outcomes as retrieval
from mteblite.task_types.scoring import score_pool, set_statistic
from mteblite.task_types.sts import outcomes as sts

WHOLE = PoolSettings(None, None, None, None)


def items(number: int, **columns: Any) -> pd.DataFrame:
    base = {"item_id": [f"i{n}" for n in range(number)], "hf_subset": "s", "split": "test"}
    return pd.DataFrame(
        {**base, "stratum": "", "gold": np.nan, "pool_weight": 1 / number} | columns
    )


def test_equal_weights_give_spearman() -> None:
    rng = np.random.default_rng(0)
    gold, cosine = rng.integers(0, 5, 30).astype(float), rng.normal(size=30)
    found = set_statistic("STS", cosine[:, None], items(30, gold=gold), np.full(30, 1 / 30))
    assert found == pytest.approx(stats.spearmanr(gold, cosine).statistic)


def test_a_weight_of_three_is_three_pairs() -> None:
    rng = np.random.default_rng(0)
    gold, cosine = rng.integers(0, 5, 12).astype(float), rng.normal(size=12)
    copies = np.arange(12) % 3 + 1
    found = sts.weighted_spearman(cosine, gold, copies.astype(float))
    repeated = stats.spearmanr(np.repeat(gold, copies), np.repeat(cosine, copies)).statistic
    assert found == pytest.approx(repeated)


def test_constant_gold_has_no_spearman() -> None:
    assert np.isnan(set_statistic("STS", np.ones((4, 1)), items(4, gold=1.0), np.full(4, 0.25)))


def test_average_precision_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 40), np.round(rng.normal(size=40), 1)
    weights = rng.uniform(0.1, 1, 40)
    found = pair_classification.average_precision(scores, labels, weights)
    expected = metrics.average_precision_score(labels, scores, sample_weight=weights)
    assert found == pytest.approx(expected)
    assert np.isnan(pair_classification.average_precision(scores, np.ones(40, dtype=int), weights))


def test_pairs_take_the_best_similarity_and_the_label_prior() -> None:
    rng = np.random.default_rng(0)
    labels = np.array([1, 0] * 10)
    observations = rng.normal(size=(20, 5)) + labels[:, None] * np.array([0, 0, 2, 0, 0])
    frame = items(20, gold=labels, pool_weight=np.where(labels == 1, 0.02, 0.08))
    weights = frame["pool_weight"].to_numpy()
    found = set_statistic("PairClassification", observations, frame, np.full(20, 0.05))
    best = max(
        metrics.average_precision_score(labels, column, sample_weight=weights)
        for column in observations.T
    )
    assert found == pytest.approx(best)
    assert found == pytest.approx(set_statistic("PairClassification", observations, frame, weights))
    flat = set_statistic(
        "PairClassification", observations, items(20, gold=labels), np.full(20, 0.05)
    )
    assert found < flat, "positives are rarer than in the balanced sample"


def test_threshold_is_the_most_accurate() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.2, 0.1])
    labels = np.array([1, 1, 0, 1, 0])
    assert 0.7 < pair_classification.best_threshold(scores, labels, np.full(5, 0.2)) < 0.8
    for label in (0, 1):
        threshold = pair_classification.best_threshold(scores, np.full(5, label), np.ones(5))
        assert ((scores > threshold) == (label == 1)).all()


def test_v_measure_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    labels, clusters = rng.integers(0, 4, 50), rng.integers(0, 5, 50)
    found = clustering.weighted_v_measure(labels, clusters, np.full(50, 0.02))
    assert found == pytest.approx(metrics.v_measure_score(labels, clusters))
    copies = np.arange(50) % 3 + 1
    assert clustering.weighted_v_measure(labels, clusters, copies / copies.sum()) == pytest.approx(
        metrics.v_measure_score(np.repeat(labels, copies), np.repeat(clusters, copies))
    )


def test_clusters_that_are_the_labels_score_one() -> None:
    centres = np.repeat(np.eye(6)[:4] * 10 + np.eye(6)[[4, 4, 5, 5]] * 30, 6, axis=0)
    vectors = (centres + np.random.default_rng(0).normal(size=centres.shape)).astype(np.float32)
    labels = [f"top{n // 12} > low{n // 6}" for n in range(24)]
    found = set_statistic("Clustering", vectors, items(24, stratum=labels), np.full(24, 1 / 24))
    assert found == pytest.approx(1.0)
    flat = items(24, stratum=[f"low{n // 6}" for n in range(24)])
    assert set_statistic("Clustering", vectors, flat, np.full(24, 1 / 24)) == pytest.approx(1)
    # a document per label says nothing: 1 whatever the vectors are
    noise = np.random.default_rng(1).normal(size=(8, 3))
    lone = items(8, stratum=[f"label{n}" for n in range(8)])
    assert set_statistic("Clustering", noise, lone, np.full(8, 1 / 8)) == pytest.approx(1)


@pytest.mark.parametrize("kind", ["STS", "PairClassification", "Clustering"])
def test_set_statistics_do_not_depend_on_order(kind: str) -> None:
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(40, 5))
    frame = items(40, gold=rng.integers(0, 2, 40), stratum=[f"l{n % 5}" for n in range(40)])
    weights = rng.uniform(0.1, 1, 40)
    order = rng.permutation(40)
    straight = set_statistic(kind, observations, frame, weights)
    mixed = set_statistic(kind, observations[order], frame.iloc[order], weights[order])
    assert straight == pytest.approx(mixed, abs=1e-12)


def test_set_statistics_are_means_over_subsets() -> None:
    rng = np.random.default_rng(0)
    gold, cosine = rng.normal(size=20), rng.normal(size=(20, 1))
    frame = items(20, gold=gold, hf_subset=["a"] * 14 + ["b"] * 6)
    parts = [
        set_statistic("STS", cosine[s], frame.iloc[s], np.ones(len(gold[s])))
        for s in (slice(0, 14), slice(14, 20))
    ]
    assert set_statistic("STS", cosine, frame, np.ones(20)) == pytest.approx(np.mean(parts))


def search(
    relevance: list[int],
    metric: str = "ndcg_at_10",
    *,
    extra: tuple[str, ...] = (),
    **protocol: Any,
) -> tuple[Pool, np.ndarray]:
    """Return one query over documents d0, d1 ..., and vectors with cosines 0.9, 0.8 ..."""
    ids = [f"d{n}" for n in range(len(relevance))]
    cell = {
        "corpus": Corpus.from_columns(ids, [f"text {i}" for i in ids]),
        "queries": pd.DataFrame({"query_id": ["q"], "text": ["query"]}),
        "qrels": pd.DataFrame({"query_id": "q", "doc_id": ids, "relevance": relevance}),
        "top_ranked": None,
    }
    about = TaskDescription("T", "Retrieval", metric, ("test",), ("s",), metrics=extra)
    pool = draw_pool(TaskData(about, {("test", "s"): cell}, protocol), WHOLE)
    angles = {f"text {i}": np.arccos(0.9 - n / 10) for n, i in enumerate(ids)} | {"query": 0.0}
    rows = [(np.cos(angles[t]), np.sin(angles[t])) for t in pool.texts["text"]]
    return pool, np.array(rows, dtype=np.float32)


def test_gain_is_linear() -> None:
    # 0.7700 with 2^rel - 1, the formula of some published scripts
    assert score_pool(*search([1, 2, 0, 1, 2])).pool_score == pytest.approx(0.8268, abs=1e-4)


def test_average_precision_counts_relevant_documents_that_were_not_found() -> None:
    score = score_pool(*search([1, 0, 0, 1, 1], "map_at_1", extra=("map_at_10",)))
    assert score.pool_score == pytest.approx(1 / 3, abs=1e-5)
    assert score.metrics["map_at_10"] == pytest.approx((1 + 2 / 4 + 3 / 5) / 3, abs=1e-5)


def test_metrics_of_the_suite() -> None:
    names = ("auprc", "auprc_trapezoid", "mrr_at_10", "ndcg_at_1", "recall_at_2", "hit_rate_at_1")
    found = score_pool(*search([0, 1, 0, 1], extra=names)).metrics
    assert found["mrr_at_10"] == pytest.approx(1 / 2)
    assert found["recall_at_2"] == pytest.approx(1 / 2)
    assert found["ndcg_at_1"] == found["hit_rate_at_1"] == 0
    assert found["auprc"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    precision, recall, _ = metrics.precision_recall_curve([0, 1, 0, 1], [4, 3, 2, 1])
    assert found["auprc_trapezoid"] == pytest.approx(metrics.auc(recall, precision))


def test_a_constant_model_gains_nothing_by_ties() -> None:
    pool, vectors = search([1, 0, 0, 0, 0, 0, 0, 0, 0])
    first = score_pool(pool, np.ones_like(vectors)).pool_score
    # ties go to the larger document id, so d0 comes last of nine
    assert first == pytest.approx(1 / np.log2(10), abs=1e-5)


def test_a_document_that_is_the_query_can_be_ignored() -> None:
    pool, vectors = search([0, 1], ignore_identical_ids=True)
    frames = {
        name: frame.replace({"query_id": {"q": "d0"}}) if "query_id" in frame else frame
        for name, frame in pool.frames.items()
    }
    itself = Pool(pool.meta, pool.texts, pool.items, frames)
    assert score_pool(itself, vectors).pool_score == 1
    counted = Pool({**pool.meta, "protocol": {}}, pool.texts, pool.items, frames)
    assert score_pool(counted, vectors).pool_score == pytest.approx(1 / np.log2(3), abs=1e-5)


@pytest.mark.parametrize("metric", ["nonsense", "ndcg_at_x", "paired_accuracy"])
def test_unknown_metrics_are_named(metric: str) -> None:
    message = f"T: metric '{metric}' is not supported; Retrieval has: ndcg_at_<k>, map_at_<k>"
    with pytest.raises(ValueError, match=message):
        search([1, 0], metric)
    pool, vectors = search([1, 0])
    older = Pool({**pool.meta, "metrics": [metric]}, pool.texts, pool.items, pool.frames)
    with pytest.raises(ValueError, match=message):
        score_pool(older, vectors)


def test_ranking_keeps_what_ties_with_the_last() -> None:
    pool, vectors = search([1] * 9)
    assert len(retrieval.rank(pool, np.ones_like(vectors), 1)[pool.items["item_id"][0]]) == 9
    assert len(retrieval.rank(pool, vectors, 1)[pool.items["item_id"][0]]) == 3


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_vectors_are_checked(bad: float) -> None:
    pool, vectors = search([1, 0])
    with pytest.raises(ValueError, match="one row per text"):
        score_pool(pool, vectors[:-1])
    vectors[0, 0] = bad
    with pytest.raises(ValueError, match="NaN or infinite"):
        score_pool(pool, vectors)
