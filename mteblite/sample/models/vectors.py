"""A variant's vectors from pooled vectors: leading dimensions, signs, unit length."""

from __future__ import annotations

import numpy as np

from mteblite.sample.models.catalog import VariantSettings


def finish(pooled: np.ndarray, settings: VariantSettings) -> np.ndarray:
    """Return the vectors of a variant.

    Args:
        pooled: (n, dim) pooled vectors of the parent, not normalised.
        settings: the variant's settings.

    Returns:
        (n, settings.dim) float32; no row is zero unless `normalize` is off.
    """
    vectors = np.ascontiguousarray(pooled[:, : settings.dim], dtype=np.float32)
    if settings.one_bit:
        vectors = np.where(vectors >= 0, np.float32(1), np.float32(-1))
    if settings.normalize:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.maximum(lengths, np.float32(1e-12))
    return vectors
