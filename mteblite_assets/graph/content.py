"""Data versions by content: equal rows have equal versions, whenever and wherever made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

DECIMALS = 9
"""Floats count to this many decimals: the last bits differ between BLAS builds and mean nothing."""


def content_version(tables: Mapping[str, pd.DataFrame], ignore: Collection[str] = ()) -> str:
    """Return a version (16 hex digits) of some tables' rows, whatever their order.

    Args:
        tables: rows per table name.
        ignore: columns that are not content, e.g. seconds.
    """
    digest = hashlib.sha256()
    for name in sorted(tables):
        frame = tables[name].drop(columns=[c for c in tables[name] if c in ignore])
        digest.update(f"{name}:{','.join(sorted(frame.columns))}:{len(frame)}".encode())
        if len(frame):
            canonical = pd.DataFrame({c: _canonical(frame[c]) for c in sorted(frame.columns)})
            hashes = pd.util.hash_pandas_object(canonical, index=False).to_numpy()
            digest.update(np.sort(hashes).tobytes())
    return digest.hexdigest()[:16]


def text_version(text: str) -> str:
    """Return the version (16 hex digits) of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(column: pd.Series) -> pd.Series:
    if pd.api.types.is_float_dtype(column):
        rounded = column.astype(float).round(DECIMALS)
        return rounded + 0.0  # -0.0 and 0.0 are the same number
    if pd.api.types.is_object_dtype(column):
        return column.map(_as_text).astype(str)
    return column.astype(str)


def _as_text(value: object) -> str:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return json.dumps([round(v, DECIMALS) if isinstance(v, float) else v for v in value])
    if isinstance(value, float):
        return repr(round(value, DECIMALS))
    return str(value)
