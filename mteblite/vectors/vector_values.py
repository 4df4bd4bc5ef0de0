"""Vectors as an encoder returns them, and the vectors of a variant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mteblite.suites.suite_model import SuiteModel


def check_vectors(vectors: Any, texts: Sequence[str], label: str) -> np.ndarray:
    """Return an encoder's vectors as (n, dim) float32.

    Args:
        vectors: numpy array, torch tensor, or a list of either.
        texts: the n texts that were encoded.
        label: model and task or prompt, for the message.

    Raises:
        ValueError: not 2-D, not one row per text, or not finite.
    """
    try:
        array = np.asarray(to_numpy(vectors), dtype=np.float32)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{label}: the vectors are a {type(vectors).__name__} that is no matrix of numbers "
            f"({error}); expected one row per text, all of one width"
        ) from error
    if array.ndim != 2 or len(array) != len(texts) or array.shape[1] == 0:
        raise ValueError(
            f"{label}: the vectors have shape {array.shape} for {len(texts)} texts; "
            f"expected one row per text: ({len(texts)}, width)"
        )
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise ValueError(
            f"{label}: {len(bad)} of {len(texts)} vectors hold NaN or infinite values (shape "
            f"{array.shape}); the first is of the text {texts[bad[0]][:80]!r}"
        )
    return array


def derive_variant(vectors: np.ndarray, spec: SuiteModel) -> np.ndarray:
    """Return a variant's vectors (n, dim): leading dimensions of its checkpoint's, unit length.

    Raises:
        ValueError: the variant asks for more dimensions than the checkpoint has.
    """
    if spec.dim is not None and len(vectors):
        if spec.dim > vectors.shape[1]:
            raise ValueError(
                f"model {spec.name} asks for {spec.dim} dimensions; "
                f"{spec.base} has {vectors.shape[1]}"
            )
        vectors = vectors[:, : spec.dim]
    if not spec.norm:
        return vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    # A zero vector (a text without a known token) has no direction; it stays zero.
    return vectors / np.where(lengths > 0, lengths, 1).astype(np.float32)


def all_equal(vectors: np.ndarray) -> bool:
    """Return whether all rows (n, dim) are one vector, but for the noise of their precision."""
    wide = np.asarray(vectors, dtype=np.float64)
    bits = np.bitwise_or.reduce(np.ascontiguousarray(vectors, np.float32).view(np.uint32), None)
    # Vectors that a half-precision model returned have no low bits.
    precision = 2.0**-8 if not bits & 0xFFFF else 2.0**-11 if not bits & 0x1FFF else 2.0**-16
    spread = np.abs(wide - wide[0]).max()
    return bool(spread <= 2 * precision * np.abs(wide[0]).max())


def to_numpy(vectors: Any) -> Any:
    """Return torch tensors as float32 arrays, in lists too; other values are returned unchanged."""
    if isinstance(vectors, list | tuple):
        return [to_numpy(v) for v in vectors]
    if hasattr(vectors, "detach"):
        return vectors.detach().cpu().float().numpy()
    return vectors
