"""Small mteb tasks of every type held in memory, and an encoder that is a function of the text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

WORDS = [f"word{i}" for i in range(60)]


def vector(text: str) -> np.ndarray:
    """A sum of word vectors and a little of the whole text: similar texts, no ties."""
    parts = [*text.split(), text]
    seeds = [int(hashlib.sha256(p.encode()).hexdigest()[:12], 16) for p in parts]
    scales = [1.0] * (len(parts) - 1) + [0.5]
    draws = [
        s * np.random.default_rng(seed).normal(size=24)
        for seed, s in zip(seeds, scales, strict=True)
    ]
    return np.sum(draws, axis=0).astype(np.float32)


def encoder(similarity: str = "cosine") -> Any:
    import mteb
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ScoringFunction
    from mteb.similarity_functions import select_similarity

    class WordEncoder(AbsEncoder):
        def __init__(self) -> None:
            meta = mteb.get_model_meta("mteb/baseline-random-encoder")
            function = ScoringFunction(similarity)
            self.mteb_model_meta = meta.model_copy(
                update={"name": "tests/words", "similarity_fn_name": function}
            )

        def encode(self, inputs: Any, **_: Any) -> np.ndarray:
            return np.stack([vector(text) for batch in inputs for text in batch["text"]])

        def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
            name = self.mteb_model_meta.similarity_fn_name
            return select_similarity(embeddings1, embeddings2, name)

    return WordEncoder()


def _sentences(rng: np.random.Generator, number: int, length: int = 8) -> list[str]:
    return [" ".join(rng.choice(WORDS, length)) for _ in range(number)]


def task(
    kind: str, base: str, main_score: str, subsets: list[str], data: Any, **settings: Any
) -> Any:
    """Return a loaded mteb task of this type over data in memory."""
    import mteb.abstasks as abstasks
    from mteb.abstasks.task_metadata import TaskMetadata

    metadata = TaskMetadata(
        name=f"InMemory{kind}",
        description="A task of the test suite.",
        type=kind,
        category="t2c" if kind == "Classification" else "t2t",
        eval_splits=["test"],
        eval_langs={subset: ["eng-Latn"] for subset in subsets},
        main_score=main_score,
        dataset={"path": "tests/in-memory", "revision": "1"},
    )

    def load_data(self: Any, **_: Any) -> None:
        self.dataset = data
        self.data_loaded = True

    members = {"metadata": metadata, "load_data": load_data, **settings}
    task = type(f"InMemory{kind}", (getattr(abstasks, base),), members)()
    task.load_data()
    return task


def tables(columns: Callable[[np.random.Generator], dict[str, dict[str, list[Any]]]]) -> Any:
    from datasets import Dataset, DatasetDict

    return {
        subset: DatasetDict(
            {
                split: Dataset.from_dict(table)
                for split, table in columns(np.random.default_rng(number)).items()
            }
        )
        for number, subset in enumerate(("one", "two"))
    }


def _classification() -> Any:
    def columns(rng: np.random.Generator) -> dict[str, dict[str, list[Any]]]:
        def rows(n: int) -> dict[str, list[Any]]:
            labels = rng.choice(["b", "a", "c"], n).tolist()
            return {
                "text": [f"{s} {x} {x}" for s, x in zip(_sentences(rng, n), labels, strict=True)],
                "label": labels,
            }

        return {"train": rows(90), "test": rows(70)}

    return task(
        "Classification", "AbsTaskClassification", "accuracy", ["one", "two"], tables(columns)
    )


def _sts() -> Any:
    def columns(rng: np.random.Generator) -> dict[str, dict[str, list[Any]]]:
        first = _sentences(rng, 60)
        second = [
            " ".join([*f.split()[:k], *s.split()[k:]])
            for f, s, k in zip(first, _sentences(rng, 60), rng.integers(0, 8, 60), strict=True)
        ]
        gold = rng.integers(0, 11, 60) / 2
        return {"test": {"sentence1": first, "sentence2": second, "score": gold.tolist()}}

    return task("STS", "AbsTaskSTS", "cosine_spearman", ["one", "two"], tables(columns))


def _pairs() -> Any:
    def columns(rng: np.random.Generator) -> dict[str, dict[str, list[Any]]]:
        first, other = _sentences(rng, 80), _sentences(rng, 80)
        labels = (rng.random(80) < 0.3).astype(int)
        second = [
            " ".join([*f.split()[: 4 * label + 1], *o.split()[4 * label + 1 :]])
            for f, o, label in zip(first, other, labels, strict=True)
        ]
        return {"test": {"sentence1": first, "sentence2": second, "labels": labels.tolist()}}

    return task(
        "PairClassification",
        "AbsTaskPairClassification",
        "max_ap",
        ["one", "two"],
        tables(columns),
    )


def _clustering(hierarchical: bool = False) -> Any:
    def columns(rng: np.random.Generator) -> dict[str, dict[str, list[Any]]]:
        kinds = rng.integers(0, 4, 150)
        texts = [
            f"{s} {WORDS[k]} {WORDS[k]} {WORDS[k]}"
            for s, k in zip(_sentences(rng, 150, 5), kinds, strict=True)
        ]
        labels: list[Any] = [str(k) for k in kinds]
        if hierarchical:
            # a label is a list, the second level missing now and then
            labels = [[str(k % 2), f"{k}"] if k else [str(k % 2)] for k in kinds]
        return {"test": {"sentences": texts, "labels": labels}}

    sample = {"max_fraction_of_documents_to_embed": None, "max_document_to_embed": 100}
    return task(
        "Clustering",
        "AbsTaskClustering",
        "v_measure",
        ["one", "two"],
        tables(columns),
        max_documents_per_cluster=400,
        n_clusters=4,
        **({} if hierarchical else sample),
        **({"max_fraction_of_documents_to_embed": None} if hierarchical else {}),
    )


def _summarization() -> Any:
    def columns(rng: np.random.Generator) -> dict[str, dict[str, list[Any]]]:
        human = [_sentences(rng, 3) for _ in range(12)]
        machine = [_sentences(rng, 6) for _ in range(12)]
        # a copied reference, a repeated summary, a document without any preference
        machine[0][0], machine[1][1] = human[0][0], machine[1][0]
        relevance = [rng.integers(1, 6, 6).astype(float).tolist() for _ in range(12)]
        relevance[2] = [3.0] * 6
        return {
            "test": {
                "text": _sentences(rng, 12),
                "human_summaries": human,
                "machine_summaries": machine,
                "relevance": relevance,
            }
        }

    return task(
        "Summarization",
        "AbsTaskSummarization",
        "cosine_spearman",
        ["one", "two"],
        tables(columns),
        min_score=1,
        max_score=5,
    )


def _bitext() -> Any:
    def columns(rng: np.random.Generator) -> dict[str, dict[str, list[Any]]]:
        first = _sentences(rng, 60)
        second = [
            " ".join([*f.split()[:5], *o.split()[5:]])
            for f, o in zip(first, _sentences(rng, 60), strict=True)
        ]
        return {"test": {"sentence1": first, "sentence2": second}}

    return task("BitextMining", "AbsTaskBitextMining", "f1", ["one", "two"], tables(columns))


def search(main_score: str, lists: bool, sub_queries: bool = False, **settings: Any) -> Any:
    from datasets import Dataset

    dataset = {}
    for number, subset in enumerate(("one", "two")):
        rng = np.random.default_rng(number)
        documents = {f"d{i}": text for i, text in enumerate(_sentences(rng, 120))}
        documents |= {f"q{i}": text for i, text in enumerate(_sentences(rng, 20))}
        names = [f"q{i // 2}_{i % 2}" if sub_queries else f"q{i}" for i in range(30)]
        queries = {
            q: documents[f"d{i}"] + " " + text
            for i, (q, text) in enumerate(zip(names, _sentences(rng, 30, 12), strict=True))
        }
        relevant = {}
        for i, q in enumerate(names):
            j = i // 2 * 2 if sub_queries else i
            relevant[q] = {
                f"d{j}": 2,
                f"d{(j + 40) % 120}": 1,
                f"d{(j + 80) % 120}": 0,
                "not in the corpus": 1,
            }
        if not sub_queries:
            relevant["q7"] = {"d1": 0}  # judged, nothing relevant: counts as 0
            relevant["q8"] = {}  # not judged: does not count
        rows = [
            {"id": i, "title": "about" if n % 3 == 0 else "", "text": t}
            for n, (i, t) in enumerate(documents.items())
        ]
        candidates = {
            q: [*relevant[q], *[f"d{(7 * k + i) % 120}" for k in range(12)]]
            for i, q in enumerate(names)
        }
        dataset[subset] = {
            "test": {
                "corpus": Dataset.from_list(rows),
                "queries": Dataset.from_dict({"id": list(queries), "text": list(queries.values())}),
                "relevant_docs": relevant,
                "top_ranked": {
                    q: sorted({d for d in c if d in documents}) for q, c in candidates.items()
                }
                if lists
                else None,
            }
        }
    kind = "Reranking" if lists else "Retrieval"
    return task(kind, "AbsTaskRetrieval", main_score, ["one", "two"], dataset, **settings)


def _sub_queries() -> Any:
    from mteb._evaluators.retrieval_metrics import max_over_subqueries

    def task_specific_scores(self: Any, scores: Any, qrels: Any, results: Any, **_: Any) -> Any:
        return max_over_subqueries(qrels, results, self.k_values)

    return search(
        "max_over_subqueries_map_at_1000", True, True, task_specific_scores=task_specific_scores
    )


TASKS: dict[str, Callable[[], Any]] = {
    "classification": _classification,
    "sts": _sts,
    "pairs": _pairs,
    "clustering sampled": _clustering,
    "clustering in levels": lambda: _clustering(hierarchical=True),
    "summarization": _summarization,
    "bitext": _bitext,
    "retrieval": lambda: search("ndcg_at_10", lists=False),
    "retrieval without itself": lambda: search(
        "ndcg_at_10", lists=False, ignore_identical_ids=True
    ),
    "retrieval by ndcg at 1": lambda: search("ndcg_at_1", lists=False),
    "retrieval by map": lambda: search("map_at_100", lists=False),
    "retrieval by mrr": lambda: search("mrr_at_10", lists=False),
    "reranking": lambda: search("map_at_1000", lists=True),
    "reranking of sub-queries": _sub_queries,
}
