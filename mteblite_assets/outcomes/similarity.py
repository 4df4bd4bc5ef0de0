"""Cosine similarities that do not depend on what else is in the batch.

A float32 matrix product gives other last digits for another number of rows, which would change
the order of near ties between a pool and its restriction. So products are taken in float64 and
rounded once to float32, the precision in which mteb hands scores to its metrics.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

TINY = 1e-12
"""Floor of a norm, as in `torch.nn.functional.normalize`: a zero vector has cosine 0."""

CHUNK = 256
"""Rows of a product at a time: 256 x 100,000 float64 are 200 MB."""


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return (n, dim) float64 rows of length 1."""
    wide = np.asarray(vectors, dtype=np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return wide / np.maximum(norms, TINY)[:, None]


def cosine_blocks(first: np.ndarray, second: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (rows of first, their (rows, m) float32 cosines to all of second), block by block.

    Args:
        first: (n, dim) rows of length 1.
        second: (m, dim) rows of length 1.
    """
    for start in range(0, len(first), CHUNK):
        rows = slice(start, min(start + CHUNK, len(first)))
        yield rows, (first[rows] @ second.T).astype(np.float32)


def paired_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the (n,) float32 cosines of row i of first with row i of second."""
    return np.einsum("ij,ij->i", unit_rows(first), unit_rows(second)).astype(np.float32)
