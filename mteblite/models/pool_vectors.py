"""The vectors of a pool's texts, each encoded with its own prompt type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mteblite.pools.pool import Pool
from mteblite.suites.task_description import TaskDescription

if TYPE_CHECKING:
    from mteb.abstasks.task_metadata import TaskMetadata

    from mteblite.models.stored_encoder import StoredEncoder


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
