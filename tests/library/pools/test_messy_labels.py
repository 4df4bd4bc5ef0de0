"""Labels and gold scores that must work, few items, and subsets that are not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.in_memory_tasks import tables
from support.in_memory_tasks import task as mteb_task
from support.messy import scored
from support.pool_tasks import (
    WHOLE,
    classification,
    clustering,
    pairs,
    sentences,
    sts,
    task,
    vectors_of,
)

from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.scoring import score_pool, set_statistic


def test_gold_scores_all_equal(settings: PoolSettings) -> None:
    cell = sts(np.random.default_rng(0))
    cell["pairs"] = cell["pairs"].assign(gold=2.5)
    pool, score = scored(task("STS", [cell]), settings)
    assert np.isnan(score.pool_score), "no order, no correlation"
    assert np.isnan(set_statistic("STS", score.observations[:8], pool.items[:8], np.full(8, 1 / 8)))
    assert set(pool.items["stratum"]) == {"bin0"}


def test_a_label_with_one_example(settings: PoolSettings) -> None:
    cell = classification(np.random.default_rng(0))
    cell["test"].loc[0, "label"] = "only here"
    pool, _ = scored(task("Classification", [cell]), settings)
    assert (pool.items["stratum"] == "only here").sum() == 1
    cell = clustering(np.random.default_rng(0))
    labels = cell["documents"]["labels"].tolist()
    labels[7] = ["top0", "only here"]
    cell["documents"] = cell["documents"].assign(labels=labels)
    pool, _ = scored(task("Clustering", [cell]), settings)
    assert (pool.items["stratum"] == "top0 > only here").sum() == 1
    cell = pairs(np.random.default_rng(0))
    cell["pairs"]["label"] = [1] + [0] * 59
    pool, score = scored(task("PairClassification", [cell]), settings)
    assert pool.items["gold"].sum() == 1
    assert 0 < score.pool_score <= 1


@pytest.mark.parametrize("kind", ["Retrieval", "STS", "PairClassification", "Clustering"])
def test_fewer_items_than_asked_for(kind: str) -> None:
    data = task(kind)
    many = PoolSettings(10_000, 30, 100, 10_000)
    pool, score = scored(data, many)
    assert len(pool.items) == pool.meta["n_available"]
    whole = draw_pool(data, WHOLE)
    assert pool.items["item_id"].tolist() == whole.items["item_id"].tolist()
    assert score.pool_score == pytest.approx(score_pool(whole, vectors_of(whole)).pool_score)


def test_hierarchical_labels(settings: PoolSettings) -> None:
    cell = clustering(np.random.default_rng(0))
    labels = cell["documents"]["labels"].tolist()
    labels[3], labels[4], labels[5] = ["top0"], ["top0 > odd", "low9"], ["top0 > odd", "low9"]
    cell["documents"] = cell["documents"].assign(labels=labels)
    pool, score = scored(task("Clustering", [cell]), WHOLE)
    strata = pool.items["stratum"]
    assert (strata == "top0").sum() == 1, "a missing level stays missing"
    assert (strata == "top0>odd > low9").sum() == 2, "the separator in a label is no level"
    assert set(np.unique(score.outcomes)) <= {0, 0.5, 1}, "a hit per level"
    bare = clustering(np.random.default_rng(0))
    bare["documents"] = bare["documents"].assign(labels=[n % 3 for n in range(60)])
    pool, _ = scored(task("Clustering", [bare]), settings)
    assert set(pool.items["stratum"]) == {"0", "1", "2"}, "a bare label is one level"


def test_a_data_set_whose_other_subsets_are_missing() -> None:
    from mteblite.tasks.task_cells import task_data
    from mteblite.tasks.task_lookup import description_of

    def columns(rng: np.random.Generator) -> dict[str, dict[str, list[Any]]]:
        first, second = sentences(rng, 20), sentences(rng, 20)
        return {"test": {"sentence1": first, "sentence2": second, "score": list(range(20))}}

    held = {"one": tables(columns)["one"]}
    made = mteb_task("STS", "AbsTaskSTS", "cosine_spearman", ["one", "two", "three"], held)
    made = made.filter_languages(None, hf_subsets=["one"])
    data = task_data(made, description_of(made, source="mteb"))
    pool, score = scored(data)
    assert set(pool.items["hf_subset"]) == {"one"}
    assert np.isfinite(score.pool_score)
