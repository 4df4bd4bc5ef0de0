"""Properties of pools of every type: caps, stability, restriction, and messy data."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mteblite_assets.outcomes.scoring import score_pool
from mteblite_assets.pools.corpus import Corpus
from mteblite_assets.pools.drawing import draw_pool
from mteblite_assets.pools.pool import ITEM_COLUMNS, Pool, PoolSettings
from mteblite_assets.pools.restriction import restrict
from mteblite_assets.pools.task_data import TaskData, TaskDescription, task_kind

WORDS = [f"word{i}" for i in range(80)]
CAPS = PoolSettings(max_items=24, bm25_top=5, max_relevant=2, random_documents=25)
WHOLE = PoolSettings(max_items=None, bm25_top=None, max_relevant=None, random_documents=None)
PROTOCOL = {"max_documents_per_cluster": 200, "n_clusters": 2, "seed": 42}
Cell = dict[str, Any]


def sentences(rng: np.random.Generator, number: int, length: int = 8) -> list[str]:
    return [" ".join(rng.choice(WORDS, length)) for _ in range(number)]


def vectors_of(pool: Pool) -> np.ndarray:
    def one(text: str) -> np.ndarray:
        seed = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16)
        return np.random.default_rng(seed).normal(size=16)

    return np.stack([one(text) for text in pool.texts["text"]]).astype(np.float32)


def retrieval(rng: np.random.Generator, lists: bool = False) -> Cell:
    ids = [f"d{i}" for i in range(90)]
    queries = [f"q{i}" for i in range(20)]
    judged = [
        (q, f"d{int(d)}", int(relevance))
        for q in queries
        for d, relevance in zip(rng.choice(90, 6, replace=False), (3, 2, 2, 1, 1, 0), strict=True)
    ]
    ranked = [(q, f"d{int(d)}") for q in queries for d in rng.choice(90, 9, replace=False)]
    return {
        "corpus": Corpus.from_columns(ids, sentences(rng, 90)),
        "queries": pd.DataFrame({"query_id": queries, "text": sentences(rng, 20)}),
        "qrels": pd.DataFrame(judged, columns=["query_id", "doc_id", "relevance"]),
        "top_ranked": pd.DataFrame(ranked, columns=["query_id", "doc_id"]) if lists else None,
    }


def classification(rng: np.random.Generator) -> Cell:
    def rows(number: int) -> pd.DataFrame:
        labels = rng.choice(["a", "b", "c"], number, p=[0.6, 0.3, 0.1])
        return pd.DataFrame({"text": sentences(rng, number), "label": labels})

    return {
        "train": rows(60),
        "test": rows(50),
        "experiments": [list(range(n, 40 + n)) for n in range(3)],
    }


def pairs(rng: np.random.Generator) -> Cell:
    labels = (np.arange(60) % 5 == 0).astype(int)
    return {
        "pairs": pd.DataFrame(
            {"text1": sentences(rng, 60), "text2": sentences(rng, 60), "label": labels}
        )
    }


def sts(rng: np.random.Generator) -> Cell:
    gold = rng.integers(0, 11, 60) / 2
    return {
        "pairs": pd.DataFrame(
            {"text1": sentences(rng, 60), "text2": sentences(rng, 60), "gold": gold}
        )
    }


def clustering(rng: np.random.Generator) -> Cell:
    labels = [[f"top{k % 2}", f"low{k}"] for k in rng.integers(0, 5, 60)]
    return {"documents": pd.DataFrame({"text": sentences(rng, 60), "labels": labels})}


def summarization(rng: np.random.Generator) -> Cell:
    return {
        "documents": pd.DataFrame(
            {
                "text": sentences(rng, 30),
                "human_summaries": [sentences(rng, 2) for _ in range(30)],
                "machine_summaries": [sentences(rng, 5) for _ in range(30)],
                "relevance": [rng.uniform(1, 5, 5).tolist() for _ in range(30)],
            }
        )
    }


def bitext(rng: np.random.Generator) -> Cell:
    return {
        "pairs": pd.DataFrame({"sentence1": sentences(rng, 50), "sentence2": sentences(rng, 50)})
    }


MAKERS: dict[str, tuple[str, Callable[..., Cell]]] = {
    "Retrieval": ("ndcg_at_10", retrieval),
    "Reranking": ("map_at_1000", lambda rng: retrieval(rng, lists=True)),
    "Classification": ("accuracy", classification),
    "PairClassification": ("max_ap", pairs),
    "STS": ("cosine_spearman", sts),
    "Clustering": ("v_measure", clustering),
    "Summarization": ("cosine_spearman", summarization),
    "BitextMining": ("f1", bitext),
}
TYPES = list(MAKERS)


def task(kind: str, cells: list[Cell] | None = None, **protocol: Any) -> TaskData:
    metric, make = MAKERS[kind]
    made = cells or [make(np.random.default_rng(n)) for n in range(2)]
    subsets = [f"s{n}" for n in range(len(made))]
    description = TaskDescription("Sampled", kind, metric, ("test",), tuple(subsets))
    return TaskData(
        description,
        {("test", name): cell for name, cell in zip(subsets, made, strict=True)},
        PROTOCOL | protocol,
    )


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
    from mteblite_assets.outcomes.scoring import observe

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


MESSY: dict[str, Callable[[], TaskData]] = {}


def messy(make: Callable[[], TaskData]) -> Callable[[], TaskData]:
    MESSY[make.__name__] = make
    return make


@messy
def strange_texts() -> TaskData:
    cell = sts(np.random.default_rng(0))
    strange = ["", "   ", "x" * 100_000, "مُحَمَّدٌ", "abc \u202b‏عربي‬ \u200bdef", "\ud83d"[:0] + "😀"]
    cell["pairs"].loc[: len(strange) - 1, "text1"] = strange
    return task("STS", [cell])


@messy
def equal_rows_and_gold() -> TaskData:
    cell = sts(np.random.default_rng(0))
    cell["pairs"] = pd.DataFrame({"text1": ["a"] * 9, "text2": ["b"] * 9, "gold": [1.0] * 9})
    return task("STS", [cell])


@messy
def repeated_and_integer_ids() -> TaskData:
    cell = retrieval(np.random.default_rng(0))
    ids = [*range(80), *range(10)]
    cell["corpus"] = Corpus.from_columns(ids, cell["corpus"].texts(range(90)))
    cell["queries"] = cell["queries"].assign(query_id=range(20))
    cell["qrels"] = pd.DataFrame(
        [(q, q, 1) for q in range(20)], columns=["query_id", "doc_id", "relevance"]
    )
    return task("Retrieval", [cell], ignore_identical_ids=True)


@messy
def relevant_documents_outside_the_corpus() -> TaskData:
    cell = retrieval(np.random.default_rng(0))
    cell["qrels"] = cell["qrels"].assign(doc_id="elsewhere").drop_duplicates("query_id")
    return task("Retrieval", [cell])


@messy
def relevance_of_zero_and_below() -> TaskData:
    cell = retrieval(np.random.default_rng(0))
    cell["qrels"].loc[::2, "relevance"] = -1
    return task("Retrieval", [cell])


@messy
def empty_and_equal_documents() -> TaskData:
    cell = retrieval(np.random.default_rng(0))
    texts = ["", " ", *["the same"] * 88]
    cell["corpus"] = Corpus.from_columns(cell["corpus"].ids, texts)
    return task("Retrieval", [cell])


@messy
def a_label_with_one_example() -> TaskData:
    cell = classification(np.random.default_rng(0))
    cell["test"].loc[0, "label"] = "only here"
    return task("Classification", [cell])


@messy
def integer_labels() -> TaskData:
    cell = classification(np.random.default_rng(0))
    for part in ("train", "test"):
        cell[part] = cell[part].assign(label=cell[part]["label"].map({"a": 0, "b": 1, "c": 10}))
    return task("Classification", [cell])


@messy
def more_clusters_than_points() -> TaskData:
    labels = [[f"label{n}"] for n in range(12)]
    return task(
        "Clustering", [{"documents": pd.DataFrame({"text": ["same"] * 12, "labels": labels})}]
    )


@pytest.mark.parametrize("settings", [CAPS, WHOLE], ids=["caps", "whole"])
@pytest.mark.parametrize("name", MESSY)
def test_messy_data_gives_outcomes_in_range(name: str, settings: PoolSettings) -> None:
    pool = draw_pool(MESSY[name](), settings)
    outcomes = score_pool(pool, vectors_of(pool)).outcomes
    assert len(outcomes) == len(pool.items)
    assert ((outcomes >= 0) & (outcomes <= 1)).all()


def _without(kind: str, frame: str, column: str, value: Any) -> TaskData:
    data = task(kind)
    cell = data.cells[("test", "s1")]
    table = cell[frame].astype({column: object})
    table.at[3, column] = value
    cell[frame] = table
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: _without("STS", "pairs", "text2", None), "'s1'.*row 3, column 'text2' is None"),
        (lambda: _without("STS", "pairs", "gold", np.nan), "row 3, column 'gold' is nan"),
        (lambda: _without("PairClassification", "pairs", "label", 2), "row 3, .*'label' is 2"),
        (lambda: _without("BitextMining", "pairs", "sentence1", np.nan), "row 3, .*'sentence1'"),
        (lambda: _without("Classification", "test", "text", None), "test rows: row 3, .*'text'"),
        (lambda: _without("Classification", "train", "text", None), "train rows: row 3, .*'text'"),
        (lambda: _without("Classification", "test", "label", None), "row 3, .*'label' is None"),
        (lambda: _without("Clustering", "documents", "text", None), "row 3, column 'text'"),
        (lambda: _without("Clustering", "documents", "labels", [None]), "row 3, column 'labels'"),
        (lambda: _without("Summarization", "documents", "relevance", [1.0]), "row 3 has 5 machine"),
        (
            lambda: _without("Summarization", "documents", "human_summaries", []),
            "row 3, .*'human_s",
        ),
        (lambda: _without("Retrieval", "queries", "text", None), "queries: row 3, column 'text'"),
    ],
)
def test_missing_values_are_named(data: Callable[[], TaskData], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        draw_pool(data(), CAPS)
    assert "Sampled" in str(caught.value)


def test_a_document_without_text_is_named() -> None:
    cell = retrieval(np.random.default_rng(0))
    texts: list[Any] = cell["corpus"].texts(range(90))
    texts[4] = None
    cell["corpus"] = Corpus.from_columns(cell["corpus"].ids, texts)
    with pytest.raises(ValueError, match=r"row 4 \(document id 'd4'\) is None"):
        draw_pool(task("Retrieval", [cell]), CAPS)


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
