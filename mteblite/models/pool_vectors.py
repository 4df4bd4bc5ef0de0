"""The vectors of a pool's texts, each encoded with its own prompt type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mteblite.pools.pool import Pool
from mteblite.suites.task_description import TaskDescription
from mteblite.vectors.vector_values import all_equal

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata

    from mteblite.models.stored_encoder import StoredEncoder


ENOUGH_TEXTS = 8
"""Fewer texts may by chance have one vector."""


def collapse(pool: Pool, vectors: np.ndarray) -> str:
    """Return what all texts of one prompt type got, where that is one vector; else "".

    Args:
        pool: the pool.
        vectors: (n_texts, dim), of its texts.

    Returns:
        `the same vector`, `the zero vector` or "".
    """
    kinds = pool.texts["prompt_type"].to_numpy(str)
    for kind in sorted(set(kinds)):
        rows = np.flatnonzero(kinds == kind)
        if len(rows) >= ENOUGH_TEXTS and all_equal(vectors[rows]):
            return "the same vector" if vectors[rows].any() else "the zero vector"
    return ""


def collapse_warning(collapsed: Mapping[str, str], n_tasks: int) -> list[str]:
    """Return the warning about tasks on which a model collapsed; [] without any.

    Args:
        collapsed: what `collapse` returned, by task.
        n_tasks: number of the suite's tasks.
    """
    if not collapsed:
        return []
    where = "every task" if len(collapsed) == n_tasks else ", ".join(sorted(collapsed))
    return [
        f"degenerate: all texts of {where} got {sorted(collapsed.values())[0]}, so scores "
        "there are those of chance, as observed and not calibrated"
    ]


def pool_vectors(
    pool: Pool, encoder: StoredEncoder, metadata: TaskMetadata, description: TaskDescription
) -> np.ndarray:
    """Return the vectors (n_texts, dim) of a pool's texts, in their order.

    The metadata determine the prompts. The encoder gets the first split and subset.

    Raises:
        ValueError: the pool has no texts, or the encoder's output is unusable.
    """
    kinds = pool.texts["prompt_type"].to_numpy(str)
    texts = pool.texts["text"].to_numpy(object)
    if not len(texts):
        raise ValueError(f"the pool of {description.task} has no texts")
    where = {"hf_split": description.splits[0], "hf_subset": description.hf_subsets[0]}
    distinct = sorted(set(kinds))
    if len(distinct) == 1:
        return encoder.vectors(list(texts), metadata, distinct[0], **where)
    found: np.ndarray | None = None
    for kind in distinct:
        rows = np.flatnonzero(kinds == kind)
        vectors = encoder.vectors(list(texts[rows]), metadata, kind, **where)
        if found is None:
            found = np.empty((len(texts), vectors.shape[1]), dtype=np.float32)
        found[rows] = vectors
    assert found is not None
    return found
