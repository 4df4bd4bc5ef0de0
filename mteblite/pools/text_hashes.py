"""A pool without its texts: hashes stand in their place until the task's data are at hand.

So a selection can be given away without the benchmark's texts, and a data set that has changed
since is noticed instead of scored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from mteblite.pools.pool import Pool

HASH = "text_sha256"
DIGITS = 32
"""Hex digits kept of SHA-256: 128 bits tell any two texts apart."""
REVEALING = 32
"""An id or label longer than this that is also a text of the pool would give the text away."""


def text_hash(text: str) -> str:
    """Return the hash of a text; lone surrogates, which UTF-8 has no bytes for, count too."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def without_texts(pool: Pool) -> Pool:
    """Return the pool with a column `text_sha256` in the place of `text`.

    Raises:
        ValueError: another table of the pool repeats a text: its ids are texts.
    """
    known = {text for text in pool.texts["text"] if len(text) > REVEALING}
    for name, frame in [("items", pool.items), *sorted(pool.frames.items())]:
        for column in frame.columns:
            if pd.api.types.is_numeric_dtype(frame[column]):
                continue
            for value in {v for v in frame[column] if isinstance(v, str)}:
                if value in known or _tail(value) in known:
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
        revision: of the data set that the texts are from, for the message.

    Raises:
        ValueError: a text is not among them; names task, item or document, and revision.
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

    Of a query that is its own text, not its candidates'; of a pair both; what items share (train
    rows, distractors, documents) belongs to none.
    """
    hashes = pool.texts[HASH].to_numpy(object)
    found: dict[str, list[str]] = {item: [] for item in pool.items["item_id"]}
    for _, frame in sorted(pool.frames.items()):
        if "item_id" not in frame.columns:
            continue
        for column in _row_columns(frame):
            for item, row in zip(frame["item_id"], frame[column], strict=True):
                found[item].append(str(hashes[row]))
    return found


def _owner(pool: Pool, lost: np.ndarray) -> str:
    """Say what a missing text belongs to: an item where there is one."""
    others = ""
    for name, frame in sorted(pool.frames.items()):
        for column in _row_columns(frame):
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


def _tail(value: str) -> str:
    """The identity in an item id, which is `<hf_subset>/<split>/<identity>`."""
    return value.split("/", 2)[-1]


def _row_columns(frame: pd.DataFrame) -> list[str]:
    return [str(column) for column in frame.columns if str(column).endswith("_row")]
