"""A pool with hashes in place of its texts, and the same pool with texts found by their hashes.

A release holds hashes, so that it contains no text of a benchmark. The hashes also detect a data
set that has changed since the release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from mteblite.pools.pool import Pool, row_columns

HASH = "text_sha256"
DIGITS = 32
"""Hex digits kept of SHA-256: 128 bits, enough to distinguish any two texts."""
REVEALING = 32
"""A longer id or label that equals a text of the pool would publish that text."""


def text_hash(text: str) -> str:
    """Return the hash of a text; the text may hold lone surrogates, which UTF-8 cannot encode."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def without_texts(pool: Pool) -> Pool:
    """Return the pool with a column `text_sha256` in the place of `text`.

    Raises:
        ValueError: another table of the pool holds a text, e.g. as an id.
    """
    known = {text for text in pool.texts["text"] if len(text) > REVEALING}
    for name, frame in [("items", pool.items), *sorted(pool.frames.items())]:
        for column in frame.columns:
            if pd.api.types.is_numeric_dtype(frame[column]):
                continue
            for value in {v for v in frame[column] if isinstance(v, str)}:
                # An item id is `<hf_subset>/<split>/<identity>`.
                if value in known or value.split("/", 2)[-1] in known:
                    raise ValueError(
                        f"{pool.meta['task']}: column {column!r} of its {name} holds a text of the "
                        f"data set ({value[:40]!r} ...), which must not be given away: use ids "
                        "that are no texts, or leave the task out of the suite"
                    )
    hashes = [text_hash(text) for text in pool.texts["text"]]
    texts = pd.DataFrame({HASH: hashes, "prompt_type": pool.texts["prompt_type"]})
    return replace(pool, texts=texts)


def with_texts(pool: Pool, texts: Iterable[str], revision: str) -> Pool:
    """Return the pool with its texts, found by their hashes.

    Args:
        pool: from `without_texts`.
        texts: at least those of the pool, in any order.
        revision: of the data set of the texts, for the message.

    Raises:
        ValueError: a text is missing; the message names task, item or document, and revision.
    """
    by_hash = {text_hash(text): text for text in texts}
    found = [by_hash.get(value) for value in pool.texts[HASH]]
    lost = np.array([text is None for text in found], dtype=bool)
    if lost.any():
        raise ValueError(
            f"{pool.meta['task']}: the text of {_owner(pool, lost)} is not in the data at revision "
            f"{revision!r} ({int(lost.sum())} of {len(lost)} texts are missing): the data set has "
            "changed since the selection was released; load the revision it was made from, or "
            "export a new release"
        )
    table = pd.DataFrame({"text": found, "prompt_type": pool.texts["prompt_type"]})
    return replace(pool, texts=table)


def hashes_by_item(pool: Pool) -> dict[str, list[str]]:
    """Return per item the hashes of its own texts, in the order of frames and columns.

    These are the text of a query and both texts of a pair. Candidate documents, train rows and
    distractors belong to no item.
    """
    hashes = pool.texts[HASH].to_numpy(object)
    found: dict[str, list[str]] = {item: [] for item in pool.items["item_id"]}
    for _, frame in sorted(pool.frames.items()):
        if "item_id" not in frame.columns:
            continue
        for column in row_columns(frame):
            for item, row in zip(frame["item_id"], frame[column], strict=True):
                found[item].append(str(hashes[row]))
    return found


def _owner(pool: Pool, lost: np.ndarray) -> str:
    """Return a name of the item, document or row that the first missing text belongs to."""
    others = ""
    for name, frame in sorted(pool.frames.items()):
        for column in row_columns(frame):
            rows = np.flatnonzero(lost[frame[column].to_numpy(dtype=np.int64)])
            if not len(rows):
                continue
            row = frame.iloc[int(rows[0])]
            if "item_id" in frame.columns:
                return f"item {row['item_id']!r}"
            if "doc_id" in frame.columns:
                item = _listing_item(pool, str(row["doc_id"]))
                others = others or f"document {row['doc_id']!r}{item}"
            else:
                others = others or f"row {int(rows[0])} of the {name} rows that its items share"
    return others or "an item"


def _listing_item(pool: Pool, document: str) -> str:
    listed = pool.frames["candidates"]
    items = listed.loc[listed["doc_id"] == document, "item_id"]
    return f" (a candidate of item {items.iloc[0]!r})" if len(items) else ""
