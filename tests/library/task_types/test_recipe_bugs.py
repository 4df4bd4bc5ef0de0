"""One regression test per bug that published scoring scripts have (three recipes, by number).

The table of these bugs: query order and gains (recipe 1), array slips (recipe 2), pooling and
missing types (recipe 3). What each recipe computes is quoted beside what must come out.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics
from support.pool_tasks import MAKERS, TYPES, WHOLE, task, vectors_of

from mteblite.lite_scores.aggregation import aggregate
from mteblite.outcomes.areas import precision_recall_area
from mteblite.outcomes.pool_score import PoolScore
from mteblite.pools.corpus import Corpus
from mteblite.pools.task_data import TaskData
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.registry import find_type, type_names
from mteblite.task_types.scoring import score_pool


def searched(
    judged: list[dict[str, int]],
    scores: list[dict[str, float]],
    metric: str = "ndcg_at_10",
    extra: tuple[str, ...] = (),
    order: list[str] | None = None,
) -> PoolScore:
    """Score queries whose similarity to each document is given.

    Query n has the n-th unit vector, and a document has its scores as vector; by dot product.
    """
    from mteblite.task_types.retrieval import outcomes as retrieval

    documents = order or sorted({d for found in scores for d in found})
    names = [f"q{n}" for n in range(len(judged))]
    cell = {
        "corpus": Corpus.from_columns(documents, [f"text {d}" for d in documents]),
        "queries": pd.DataFrame({"query_id": names, "text": [f"query {q}" for q in names]}),
        "qrels": pd.DataFrame(
            [(q, d, r) for q, found in zip(names, judged, strict=True) for d, r in found.items()],
            columns=["query_id", "doc_id", "relevance"],
        ),
        "top_ranked": None,
    }
    about = TaskDescription("T", "Retrieval", metric, ("test",), ("s",), metrics=extra)
    pool = draw_pool(TaskData(about, {("test", "s"): cell}, {}), WHOLE)
    vectors = {f"query {q}": np.eye(len(names))[n] for n, q in enumerate(names)}
    vectors |= {f"text {d}": np.array([found[d] for found in scores]) for d in documents}
    stacked = np.stack([vectors[text] for text in pool.texts["text"]]).astype(np.float32)
    return retrieval.score_pool(pool, stacked, similarity="dot")


GRADED = {"d0": 1, "d1": 2, "d2": 0, "d3": 1, "d4": 2}
FALLING = {f"d{n}": 1 - n / 10 for n in range(5)}


def test_recipe_1_ndcg_ranks_by_score_not_by_the_order_given() -> None:
    straight = searched([GRADED], [FALLING]).pool_score
    turned = searched([GRADED], [FALLING], order=["d3", "d0", "d4", "d2", "d1"]).pool_score
    shuffled = searched(
        [{d: GRADED[d] for d in ("d4", "d2", "d0", "d3", "d1")}],
        [{d: FALLING[d] for d in ("d1", "d4", "d0", "d3", "d2")}],
    ).pool_score
    assert straight == turned == shuffled
    reversed_scores = {d: -s for d, s in FALLING.items()}
    assert searched([GRADED], [reversed_scores]).pool_score != straight, "the model matters"


def test_recipe_1_gain_is_the_relevance_not_two_to_its_power() -> None:
    assert searched([GRADED], [FALLING]).pool_score == pytest.approx(0.8268, abs=1e-4)
    # 2^rel - 1 gives 0.7700 here


def test_recipe_1_average_precision_divides_by_all_relevant_documents() -> None:
    judged = {"d0": 1} | {f"far{n:02d}": 1 for n in range(49)}
    scores = (
        {"d0": 1.0} | {f"near{n}": 0.9 for n in range(20)} | {f"far{n:02d}": 0.1 for n in range(49)}
    )
    found = searched([judged], [scores], "map_at_10").pool_score
    assert found == pytest.approx(1 / 50, abs=1e-5), "1 of 50 relevant at rank 1 is not 1"


def test_recipe_1_average_precision_counts_every_positive_grade() -> None:
    graded = searched([{"d0": 2, "d1": 0, "d2": 3}], [FALLING | {}], "map_at_10").pool_score
    binary = searched([{"d0": 1, "d1": 0, "d2": 1}], [FALLING | {}], "map_at_10").pool_score
    assert graded == binary == pytest.approx((1 + 2 / 3) / 2, abs=1e-5)


def test_recipe_1_a_constant_model_has_the_expected_random_score() -> None:
    names = [f"d{n}" for n in range(9)]
    constant = dict.fromkeys(names, 0.5)
    scores = [searched([{name: 1}], [constant]).pool_score for name in names]
    assert len(set(scores)) == 9, "labels do not help: ties go by document id"
    expected = np.mean([1 / np.log2(rank + 1) for rank in range(1, 10)])
    assert np.mean(scores) == pytest.approx(expected, abs=1e-5)


def test_recipe_1_areas_do_not_need_what_numpy_dropped() -> None:
    # numpy has no `trapz` any more, and np.trapz(precision, recall) missed the curve's start
    labels, scores = np.array([1, 0, 1, 0]), np.array([0.9, 0.8, 0.7, 0.1])
    step = precision_recall_area("auprc", labels, scores)
    assert step == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3)
    assert precision_recall_area("auprc_trapezoid", np.array([1, 0]), np.array([2, 1])) == 1
    assert precision_recall_area("auprc", np.array([1, 0]), np.array([2, 1])) == 1


def test_recipe_1_linear_interpolation_overestimates_and_has_its_own_name() -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 40), rng.normal(size=40)
    step = precision_recall_area("auprc", labels, scores)
    assert step == pytest.approx(metrics.average_precision_score(labels, scores))
    few = np.array([0, 1] * 10), np.repeat([2.0, 1.0], 10)
    assert precision_recall_area("auprc_trapezoid", *few) > precision_recall_area("auprc", *few)
    found = searched([GRADED], [FALLING], extra=("auprc", "auprc_trapezoid")).metrics
    assert set(found) == {"auprc", "auprc_trapezoid"}


def test_recipe_1_areas_take_no_quadratic_time() -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 300_000), rng.normal(size=300_000)
    started = time.process_time()
    precision_recall_area("auprc", labels, scores)
    precision_recall_area("auprc_trapezoid", labels, scores)
    # a pass over all pairs per threshold would be 9e10 steps
    assert time.process_time() - started < 5


@pytest.mark.parametrize("kind", TYPES)
def test_recipe_1_counts_add_up(kind: str) -> None:
    pool = draw_pool(task(kind), WHOLE)
    by_cell = pool.items.groupby(["split", "hf_subset"]).size()
    assert by_cell.sum() == len(pool.items) == pool.meta["n_available"]
    assert len(score_pool(pool, vectors_of(pool)).outcomes) == len(pool.items)


def test_recipe_2_each_query_has_its_own_judgements() -> None:
    scores = {"d0": 0.9, "d1": 0.5, "d2": 0.1}
    found = searched([{"d0": 1}, {"d2": 1}], [scores, scores]).outcomes
    assert found.tolist() == pytest.approx([1, 0.5], abs=1e-5)


def test_recipe_2_the_score_is_the_mean_of_ratios() -> None:
    scores = {"d0": 0.9, "d1": 0.5, "d2": 0.1}
    # query 0: dcg 3 of 3; query 1: dcg 0.5 of 1. Ratio of sums: 3.5 / 4
    score = searched([{"d0": 3}, {"d2": 1}], [scores, scores])
    assert score.pool_score == pytest.approx((1 + 0.5) / 2, abs=1e-5)
    assert score.pool_score == pytest.approx(score.outcomes.mean(), abs=6e-6)


def test_recipe_2_ndcg_is_at_most_1_and_the_oracle_has_1() -> None:
    rng = np.random.default_rng(0)
    names = [f"d{n}" for n in range(30)]
    judged = [dict(zip(names, rng.integers(0, 4, 30).tolist(), strict=True)) for _ in range(25)]
    scores = [dict(zip(names, rng.normal(size=30).tolist(), strict=True)) for _ in range(25)]
    found = searched(judged, scores).outcomes
    assert (found >= 0).all()
    assert (found <= 1).all()
    oracle = [{d: float(relevance) for d, relevance in query.items()} for query in judged]
    assert searched(judged, oracle).outcomes.tolist() == pytest.approx([1] * 25)


def test_recipe_2_reranking_is_scored_by_average_precision() -> None:
    import mteb

    own = find_type("Reranking").own_data
    assert own is not None
    assert own.main_metric == "map_at_1000"
    assert mteb.get_task("AskUbuntuDupQuestions").metadata.main_score == "map_at_1000"
    pool = draw_pool(task("Reranking"), WHOLE)
    item = pool.items["item_id"].iloc[0]
    query = pool.frames["queries"].set_index("item_id").loc[item]
    listed = pool.frames["candidates"].query("item_id == @item")["doc_id"]
    documents = pool.frames["documents"].query("hf_subset == @query.hf_subset")
    rows = documents.set_index("doc_id").loc[listed, "document_row"].to_numpy()
    vectors = vectors_of(pool)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    ranked = listed.to_numpy()[np.argsort(-(unit[rows] @ unit[query.query_row]))]
    qrels = pool.frames["qrels"].query("item_id == @item and relevance > 0")["doc_id"]
    hits = np.isin(ranked, qrels)
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    expected = (precision * hits).sum() / len(qrels)
    assert score_pool(pool, vectors).outcomes[0] == pytest.approx(expected)


def test_recipe_3_a_suite_is_averaged_by_task_type_and_never_over_another_set() -> None:
    types = {"A": "Retrieval", "B": "STS", "C": "STS", "D": "STS"}
    scores = pd.DataFrame({"task": list("ABCD"), "predicted": [0.4, 0.8, 0.8, 0.8]})
    found = aggregate(scores, types)
    assert found.macro_mean == pytest.approx(0.6), "a plain mean would be 0.7"
    assert found.mean == pytest.approx(0.7)
    with pytest.raises(ValueError, match="'E' is not in the suite"):
        aggregate(pd.DataFrame({"task": list("ABCDE"), "predicted": 0.5}), types)


def test_recipe_3_summarization_is_a_mean_over_documents_not_one_pool() -> None:
    # within each document the model ranks perfectly, but on another level per document
    human = [f"human {n}" for n in range(3)]
    machine = [[f"machine {n}{k}" for k in range(4)] for n in range(3)]
    relevance = [[1.0, 2.0, 3.0, 4.0]] * 3
    angles = {f"machine {n}{k}": 1.2 - 0.1 * k - 0.4 * n for n in range(3) for k in range(4)}
    cell = {
        "documents": pd.DataFrame(
            {
                "text": ["a", "b", "c"],
                "human_summaries": [[text] for text in human],
                "machine_summaries": machine,
                "relevance": relevance,
            }
        )
    }
    pool = draw_pool(task("Summarization", [cell]), WHOLE)
    points = [angles.get(text, 0.0) for text in pool.texts["text"]]
    vectors = np.array([(np.cos(a), np.sin(a)) for a in points], dtype=np.float32)
    score = score_pool(pool, vectors)
    pooled = stats.spearmanr(
        np.ravel(relevance), [np.cos(angles[t]) for texts in machine for t in texts]
    ).statistic
    assert score.outcomes.tolist() == pytest.approx([1, 1, 1])
    assert score.pool_score == pytest.approx(1)
    assert pooled < 0.6


def test_recipe_3_average_precision_is_the_best_over_similarities() -> None:
    # positives are parallel but of other length: cosine tells them, distances do not
    rng = np.random.default_rng(0)
    first = rng.normal(size=(40, 8))
    labels = np.arange(40) % 2
    second = np.where(labels[:, None] == 1, first * 5, rng.normal(size=(40, 8)))
    texts = {f"a{n}": first[n] for n in range(40)} | {f"b{n}": second[n] for n in range(40)}
    cell = {
        "pairs": pd.DataFrame(
            {
                "text1": [f"a{n}" for n in range(40)],
                "text2": [f"b{n}" for n in range(40)],
                "label": labels,
            }
        )
    }
    data = task("PairClassification", [cell])
    names = [f"{s}_ap" for s in ("cosine", "dot", "euclidean", "manhattan")]
    about = TaskDescription(**{**vars(data.description), "metrics": tuple(names)})
    pool = draw_pool(TaskData(about, data.cells, {}), WHOLE)
    score = score_pool(pool, np.array([texts[t] for t in pool.texts["text"]], dtype=np.float32))
    assert score.pool_score == max(score.metrics.values()) == score.metrics["cosine_ap"]
    assert score.metrics["euclidean_ap"] < 0.9 < score.metrics["cosine_ap"]


@pytest.mark.parametrize("kind", type_names())
def test_recipe_3_no_type_is_left_out(kind: str) -> None:
    assert set(type_names()) == set(MAKERS)
    pool = draw_pool(task(kind), WHOLE)
    score: Any = score_pool(pool, vectors_of(pool)).pool_score
    assert isinstance(score, float)
    assert np.isfinite(score)


def test_recipe_3_a_missing_task_leaves_no_macro_mean() -> None:
    scores = pd.DataFrame({"task": ["A"], "predicted": [0.4]})
    found = aggregate(scores, {"A": "Retrieval", "B": "BitextMining"})
    assert np.isnan(found.macro_mean)
    assert np.isnan(found.mean)
