"""Small tasks of every type as pools are drawn from them; vectors that depend on texts alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from mteblite.pools.corpus import Corpus
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.task_description import TaskDescription

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
