"""Properties of pools of every type: caps, stability and restriction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.pool_tasks import (
    CAPS,
    TYPES,
    WHOLE,
    Cell,
    bitext,
    classification,
    clustering,
    retrieval,
    task,
    vectors_of,
)

from mteblite.pools.corpus import Corpus
from mteblite.pools.pool import ITEM_COLUMNS, Pool
from mteblite.pools.restriction import restrict
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.registry import task_kind
from mteblite.task_types.scoring import score_pool


def shuffled(cell: Cell) -> Cell:
    """The same rows in another order; row numbers follow."""
    result = dict(cell)
    for name, frame in cell.items():
        if isinstance(frame, pd.DataFrame) and name not in ("train", "top_ranked"):
            result[name] = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    if "corpus" in cell:
        order = np.random.default_rng(1).permutation(len(cell["corpus"])).tolist()
        corpus = cell["corpus"]
        result["corpus"] = Corpus.from_columns(
            [corpus.ids[row] for row in order], corpus.texts(order)
        )
    return result


@pytest.mark.parametrize("kind", TYPES)
def test_a_pool_keeps_its_caps_and_its_shape(kind: str) -> None:
    pool = draw_pool(task(kind), CAPS)
    items = pool.items
    assert list(items.columns) == ITEM_COLUMNS
    assert items.groupby("hf_subset").size().tolist() == [12, 12]
    assert items["item_id"].is_unique
    assert items["item_id"].is_monotonic_increasing
    assert items.groupby("hf_subset")["pool_weight"].sum().tolist() == pytest.approx([0.5, 0.5])
    assert not pool.texts.duplicated().any()
    for frame in pool.frames.values():
        for column in [c for c in frame.columns if c.endswith("_row")]:
            assert frame[column].between(0, len(pool.texts) - 1).all()
    assert pool.meta["n_available"] >= len(items)


@pytest.mark.parametrize("kind", TYPES)
def test_a_pool_survives_saving(kind: str, tmp_path: Any) -> None:
    pool = draw_pool(task(kind), CAPS)
    pool.save(tmp_path / "pool")
    again = Pool.load(tmp_path / "pool")
    assert again.pool_hash() == pool.pool_hash()
    assert score_pool(again, vectors_of(again)).pool_score == pytest.approx(
        score_pool(pool, vectors_of(pool)).pool_score, abs=1e-12
    )


@pytest.mark.parametrize("kind", TYPES)
def test_a_draw_repeats_and_depends_on_the_seed(kind: str) -> None:
    first, second = draw_pool(task(kind), CAPS), draw_pool(task(kind), CAPS)
    other = draw_pool(task(kind), PoolSettings(24, 5, 2, 25, seed=1))
    assert first.pool_hash() == second.pool_hash()
    assert first.pool_hash() != other.pool_hash()


@pytest.mark.parametrize("kind", TYPES)
def test_the_order_of_rows_does_not_matter(kind: str) -> None:
    data = task(kind)
    straight = draw_pool(data, CAPS)
    mixed = draw_pool(task(kind, [shuffled(cell) for cell in data.cells.values()]), CAPS)
    pd.testing.assert_frame_equal(straight.items, mixed.items)
    pd.testing.assert_frame_equal(straight.texts, mixed.texts)
    a, b = score_pool(straight, vectors_of(straight)), score_pool(mixed, vectors_of(mixed))
    np.testing.assert_allclose(a.outcomes, b.outcomes, atol=1e-12)
    assert a.pool_score == pytest.approx(b.pool_score, abs=1e-12)


@pytest.mark.parametrize("settings", [CAPS, WHOLE], ids=["caps", "whole"])
@pytest.mark.parametrize("kind", [k for k in TYPES if task_kind(k) == "per_item"])
def test_restriction_keeps_the_outcomes_of_its_items(kind: str, settings: PoolSettings) -> None:
    pool = draw_pool(task(kind), settings)
    full = score_pool(pool, vectors_of(pool)).outcomes
    # from one subset only, so that the other's shared texts can go
    some = pool.items.index[pool.items["hf_subset"] == "s1"][::3]
    part = restrict(pool, pool.items["item_id"].iloc[some].tolist()[::-1])
    assert part.items["item_id"].tolist() == pool.items["item_id"].iloc[some].tolist()
    assert part.items["pool_weight"].sum() == pytest.approx(1)
    assert len(part.texts) < len(pool.texts)
    assert score_pool(part, vectors_of(part)).outcomes.tolist() == full[some].tolist()


@pytest.mark.parametrize("kind", [k for k in TYPES if task_kind(k) == "set_metric"])
def test_restriction_keeps_the_observations_of_its_items(kind: str) -> None:
    from mteblite.task_types.scoring import observe

    pool = draw_pool(task(kind), CAPS)
    part = restrict(pool, pool.items["item_id"].tolist()[::2])
    expected = observe(pool, vectors_of(pool))[::2]
    np.testing.assert_array_equal(observe(part, vectors_of(part)), expected)
    used = {int(r) for f in part.frames.values() for c in f if c.endswith("_row") for r in f[c]}
    assert used == set(range(len(part.texts)))


def test_restriction_to_an_unknown_item_is_refused() -> None:
    pool = draw_pool(task("STS"), CAPS)
    with pytest.raises(ValueError, match=r"'nothing'.*pool of 24 items"):
        restrict(pool, ["nothing"])


def test_other_types_are_refused_by_name() -> None:
    description = TaskDescription(
        "Sampled", "MultilabelClassification", "accuracy", ("test",), ("s0",)
    )
    with pytest.raises(ValueError, match="Sampled is a MultilabelClassification task"):
        draw_pool(TaskData(description, {("test", "s0"): {}}), CAPS)


def test_pairs_are_balanced_and_weighted_back_to_their_prior() -> None:
    pool = draw_pool(task("PairClassification"), CAPS)
    items = pool.items
    assert items.groupby(["hf_subset", "gold"]).size().tolist() == [6, 6, 6, 6]
    assert items.loc[items["gold"] == 1, "pool_weight"].sum() == pytest.approx(0.2)


def test_strata_keep_their_share() -> None:
    classes = draw_pool(task("Classification"), CAPS).items
    shares = classes["stratum"].value_counts(normalize=True)
    assert shares["a"] > shares["b"] > shares["c"] > 0
    assert set(draw_pool(task("STS"), CAPS).items["stratum"]) == {f"bin{n}" for n in range(5)}
    assert all(" > " in s for s in draw_pool(task("Clustering"), CAPS).items["stratum"])


def test_candidates_are_the_best_the_relevant_and_the_shared() -> None:
    data = task("Retrieval", [retrieval(np.random.default_rng(0))])
    pool = draw_pool(data, CAPS)
    documents, own = pool.frames["documents"], pool.frames["candidates"]
    assert documents["shared"].sum() == 25
    assert own.groupby("item_id").size().max() <= 5 + 5
    assert set(own["doc_id"]) <= set(documents["doc_id"])
    # the cap of 2 gives way to the 10 that nDCG@10 can use, so nothing is lost
    assert pool.meta["n_dropped_relevant"] == 0
    assert set(pool.frames["qrels"].groupby("item_id").size()) == {6}


def test_relevant_documents_beyond_the_cap_are_counted() -> None:
    cell = retrieval(np.random.default_rng(0))
    cell["qrels"] = pd.DataFrame(
        [("q0", f"d{i}", 2 if i == 77 else 1) for i in range(90)],
        columns=["query_id", "doc_id", "relevance"],
    )
    pool = draw_pool(task("Retrieval", [cell]), PoolSettings(10, 1, 15, 10))
    kept = set(pool.frames["qrels"]["doc_id"])
    assert "d77" in kept, "the most relevant stay"
    assert 15 <= len(kept) <= 15 + 11
    assert pool.meta["n_dropped_relevant"] == 90 - len(kept)
    assert kept == set(pool.frames["documents"]["doc_id"]), "what is judged can be found"


@pytest.mark.parametrize(
    ("metrics", "lost"),
    [
        (("ndcg_at_10",), True),
        (("ndcg_at_10", "precision_at_5", "mrr_at_10"), True),
        (("ndcg_at_60",), False),
        (("ndcg_at_10", "map_at_10"), False),
        (("ndcg_at_10", "recall_at_100"), False),
        (("ndcg_at_10", "auprc"), False),
        (("ndcg_at_10", "nauc_map_at_5_std"), False),
    ],
)
def test_relevant_documents_are_dropped_only_where_no_metric_needs_them(
    metrics: tuple[str, ...], lost: bool
) -> None:
    # as in TRECCOVID, a query with far more relevant documents than the cap
    cell = retrieval(np.random.default_rng(0))
    cell["qrels"] = pd.DataFrame(
        [("q0", f"d{i}", 1) for i in range(60)], columns=["query_id", "doc_id", "relevance"]
    )
    data = task("Retrieval", [cell])
    about = replace(data.description, main_metric=metrics[0], metrics=metrics[1:])
    pool = draw_pool(TaskData(about, data.cells), PoolSettings(10, 1, 15, 10))
    assert (pool.meta["n_dropped_relevant"] > 0) == lost
    assert len(pool.frames["qrels"]) + pool.meta["n_dropped_relevant"] == 60


def test_parallel_subsets_use_the_same_rows() -> None:
    table = bitext(np.random.default_rng(0))["pairs"]
    back = table.rename(columns={"sentence1": "sentence2", "sentence2": "sentence1"})
    data = task("BitextMining", [{"pairs": table}, {"pairs": back}])
    pool = draw_pool(data, PoolSettings(20, None, None, 15))
    own = pool.frames["pairs"].assign(subset=pool.frames["pairs"]["item_id"].str[:2])
    rows = own.groupby("subset")["target_index"].agg(set)
    assert rows["s0"] == rows["s1"]
    alone = draw_pool(task("BitextMining", [{"pairs": table}]), PoolSettings(10, None, None, 15))
    assert len(pool.texts) <= len(alone.texts) + 15


def test_one_label_is_refused() -> None:
    cell = classification(np.random.default_rng(0))
    cell["train"] = cell["train"].assign(label="a")
    with pytest.raises(ValueError, match="experiment 0 have a single label"):
        draw_pool(task("Classification", [cell]), CAPS)
    documents = clustering(np.random.default_rng(0))["documents"].assign(labels="a")
    with pytest.raises(ValueError, match="same label"):
        draw_pool(task("Clustering", [{"documents": documents}]), CAPS)


def test_ids_that_do_not_match_are_refused() -> None:
    cell = retrieval(np.random.default_rng(0))
    cell["qrels"] = cell["qrels"].assign(query_id="nobody")
    with pytest.raises(ValueError, match="none of 20 queries"):
        draw_pool(task("Retrieval", [cell]), CAPS)
