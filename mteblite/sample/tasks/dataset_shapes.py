"""Data sets of mteb's tasks from plain rows."""

from __future__ import annotations

from typing import Any

from datasets import Dataset, DatasetDict
from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData


def labelled(splits: dict[str, list[tuple[str, int]]]) -> DatasetDict:
    """Return splits of a classification task: columns `text`, `label`."""
    return DatasetDict(
        {
            split: Dataset.from_dict({"text": [t for t, _ in rows], "label": [n for _, n in rows]})
            for split, rows in splits.items()
        }
    )


def paired(rows: list[Any], value: str | None = None) -> DatasetDict:
    """Return the test split of a pair task: `sentence1`, `sentence2` and a column of values."""
    names = ["sentence1", "sentence2", *([value] if value else [])]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return DatasetDict({"test": Dataset.from_dict(columns)})


def clustered(rows: list[tuple[str, str]]) -> DatasetDict:
    """Return the test split of a clustering task: columns `sentences`, `labels`."""
    columns = {"sentences": [text for text, _ in rows], "labels": [label for _, label in rows]}
    return DatasetDict({"test": Dataset.from_dict(columns)})


def searched(
    queries: dict[str, str],
    documents: dict[str, str],
    relevant: dict[str, dict[str, int]],
    candidates: dict[str, list[str]] | None,
) -> dict[str, dict[str, RetrievalSplitData]]:
    """Return the test split of a retrieval task, with candidate lists for reranking."""
    split = RetrievalSplitData(
        corpus=Dataset.from_dict({"id": list(documents), "text": list(documents.values())}),
        queries=Dataset.from_dict({"id": list(queries), "text": list(queries.values())}),
        relevant_docs=relevant,
        top_ranked=candidates,
    )
    return {"default": {"test": split}}
