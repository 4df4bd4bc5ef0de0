"""Similarities that do not depend on the other rows of the batch.

The last digits of a float32 matrix product depend on the number of rows, which would change the
order of near ties between a pool and its restriction. So products are float64 and are rounded once
to float32, the precision of the scores that mteb gives to its metrics.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
"""Names as in sentence-transformers' `similarity_fn_name`; distances are negated."""

TINY = 1e-12
"""Floor of a norm, as in `torch.nn.functional.normalize`: a zero vector has cosine 0."""

CHUNK = 256
"""Rows of a product at a time: 256 x 100,000 float64 are 200 MB."""

PAIRS_AT_ONCE = 16_384
"""Pairs of vectors at a time: at 1,024 dimensions, 2 x 134 MB in float64."""


def prepare(vectors: np.ndarray, similarity: str) -> np.ndarray:
    """Return (n, dim) float64 rows to compare: of length 1 for the cosine, else unchanged.

    Raises:
        ValueError: the similarity is not in SIMILARITIES.
    """
    if similarity not in SIMILARITIES:
        raise ValueError(
            f"similarity {similarity!r} is not supported; known: {', '.join(SIMILARITIES)}"
        )
    wide = np.asarray(vectors, dtype=np.float64)
    if similarity != "cosine":
        return wide
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return np.asarray(wide / np.maximum(norms, TINY)[:, None])


def blocks(
    first: np.ndarray, second: np.ndarray, similarity: str
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (rows of first, their (rows, m) float32 similarities to all m rows of second).

    Both are prepared rows, see `prepare`.
    """
    for start in range(0, len(first), CHUNK):
        rows = slice(start, min(start + CHUNK, len(first)))
        yield rows, _matrix(first[rows], second, similarity).astype(np.float32)


def paired(
    first: np.ndarray,
    second: np.ndarray,
    similarity: str,
    first_rows: np.ndarray | None = None,
    second_rows: np.ndarray | None = None,
) -> np.ndarray:
    """Return the (n,) float32 similarities of prepared rows: the i-th of first, the i-th of second.

    `first_rows` and `second_rows` (n,) choose rows; None = all in order.
    """
    left = np.arange(len(first)) if first_rows is None else first_rows
    right = np.arange(len(second)) if second_rows is None else second_rows
    found = np.empty(len(left), dtype=np.float32)
    for start in range(0, len(left), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        a, b = first[left[part]], second[right[part]]
        if similarity in ("cosine", "dot"):
            found[part] = np.einsum("ij,ij->i", a, b)
        elif similarity == "euclidean":
            found[part] = -np.sqrt(np.square(a - b).sum(axis=1))
        else:
            found[part] = -np.abs(a - b).sum(axis=1)
    return found


def _matrix(first: np.ndarray, second: np.ndarray, similarity: str) -> np.ndarray:
    if similarity in ("cosine", "dot"):
        return np.asarray(first @ second.T)
    from scipy.spatial.distance import cdist

    return np.asarray(
        -cdist(first, second, "euclidean" if similarity == "euclidean" else "cityblock")
    )
