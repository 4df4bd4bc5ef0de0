"""All task types, and the look-up by name. A new type is one folder and one entry here."""

from __future__ import annotations

from mteblite.task_types.bitext_mining.task_type import BITEXT_MINING
from mteblite.task_types.classification.task_type import CLASSIFICATION
from mteblite.task_types.clustering.task_type import CLUSTERING
from mteblite.task_types.pair_classification.task_type import PAIR_CLASSIFICATION
from mteblite.task_types.reranking.task_type import RERANKING
from mteblite.task_types.retrieval.task_type import RETRIEVAL
from mteblite.task_types.sts.task_type import STS
from mteblite.task_types.summarization.task_type import SUMMARIZATION
from mteblite.task_types.task_type import TaskType

TASK_TYPES: tuple[TaskType, ...] = (
    RETRIEVAL,
    RERANKING,
    CLASSIFICATION,
    PAIR_CLASSIFICATION,
    STS,
    CLUSTERING,
    SUMMARIZATION,
    BITEXT_MINING,
)


def type_names() -> list[str]:
    """Return the names of all types."""
    return [t.name for t in TASK_TYPES]


def own_data_types() -> list[str]:
    """Return the names of the types that a user's own data may have."""
    return [t.name for t in TASK_TYPES if t.own_data is not None]


def find_type(name: str) -> TaskType:
    """Return a type by its name.

    Raises:
        ValueError: there is no such type; lists the supported ones.
    """
    for task_type in TASK_TYPES:
        if task_type.name == name:
            return task_type
    raise ValueError(
        f"task type {name!r} is not supported; supported types: {', '.join(type_names())}"
    )


TYPE_FACTS = ("lowest_score", "lowest_outcome", "mean_is_score")
"""Columns of `suites.suite_tasks`, so that SQL needs no name of a type."""


def type_facts(name: str, main_metric: str) -> dict[str, float | bool | None]:
    """Return TYPE_FACTS of a task of the type `name`; None for types that are not supported."""
    if name not in type_names():
        return dict.fromkeys(TYPE_FACTS)
    found = find_type(name)
    return {
        "lowest_score": found.lowest_score,
        "lowest_outcome": found.lowest_outcome,
        "mean_is_score": found.mean_is_score(main_metric),
    }


def task_kind(name: str) -> str:
    """Return `set_metric` or `per_item`; the latter for types that are not supported.

    A suite may list a task of such a type. A check reports it, and no stage runs it.
    """
    return find_type(name).kind if name in type_names() else "per_item"
