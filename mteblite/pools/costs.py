"""Cost of encoding a selected item, in tokens, for token budgets.

The item of a query includes its candidate documents, the item of a pair two short texts. Train rows
and shared documents are encoded for every selection. Tokens are counted as BM25 counts terms:
tokenizers of models differ, and only ratios of costs matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mteblite.pools.pool import Pool, row_columns
from mteblite.pools.restriction import CELL, restrict
from mteblite.pools.tokens import tokenize
from mteblite.seeds import generator

SIZE = 40
"""Items of the larger of two nested selections; the smaller has half of them."""
DRAWS = 5
"""Random selections to average over."""


@dataclass(frozen=True)
class PoolCosts:
    """Costs of one pool, in tokens.

    Attributes:
        item_tokens: cost of one more item beside a few dozen others.
        shared_tokens: cost of the texts that every selection encodes.
        n_tokens: cost of the whole pool.
    """

    item_tokens: float
    shared_tokens: float
    n_tokens: int


def pool_costs(pool: Pool, max_tokens: int | None) -> PoolCosts:
    """Count the tokens of a pool, per item and shared.

    The cost of an item is the slope between two nested random selections, so that a document of
    several items counts once. A text counts at most `max_tokens` tokens; None = no cap.
    """
    counts = dict(zip(pool.texts["text"], text_tokens(pool, max_tokens).tolist(), strict=True))

    def tokens(cut: Pool) -> int:
        return sum(counts[text] for text in cut.texts["text"])

    ids = pool.items["item_id"].to_numpy(dtype=object)
    large = min(SIZE, len(ids))
    small = max(1, large // 2)
    slopes, rests = [], []
    for draw in range(DRAWS if large > small else 1):
        chosen = generator(str(pool.meta["task"]), "costs", draw).permutation(ids)[:large]
        most = tokens(restrict(pool, chosen.tolist()))
        if large == small:
            slopes.append(float(most))
            rests.append(0.0)
            continue
        least = tokens(restrict(pool, chosen[:small].tolist()))
        slopes.append((most - least) / (large - small))
        rests.append(most - large * slopes[-1])
    return PoolCosts(
        item_tokens=max(1.0, float(np.mean(slopes))),
        shared_tokens=max(0.0, float(np.mean(rests))),
        n_tokens=tokens(pool),
    )


def text_tokens(pool: Pool, max_tokens: int | None) -> np.ndarray:
    """Return the tokens of each of a pool's texts (n_texts,), at least 1 and at most the cap."""
    lengths = np.array([len(tokenize(text)) for text in pool.texts["text"]], dtype=np.int64)
    return np.clip(lengths, 1, max_tokens)


def item_tokens(pool: Pool, max_tokens: int | None) -> pd.DataFrame:
    """Return the tokens of the texts of each item alone: item_id, tokens.

    Candidate documents count for every item that lists them. Train rows and shared documents, which
    every selection encodes, count for no item.
    """
    lengths = text_tokens(pool, max_tokens)
    parts = [
        frame[["item_id", column]].set_axis(["item_id", "row"], axis=1)
        for frame in pool.frames.values()
        if "item_id" in frame.columns
        for column in row_columns(frame)
    ]
    if "candidates" in pool.frames:
        parts.append(_candidate_rows(pool.frames))
    pairs = pd.concat(parts, ignore_index=True).drop_duplicates()
    pairs["tokens"] = lengths[pairs["row"].to_numpy()]
    total = pairs.groupby("item_id")["tokens"].sum()
    rows = pool.items[["item_id"]].reset_index(drop=True)
    return rows.assign(tokens=rows["item_id"].map(total).fillna(0).astype(np.int64).clip(lower=1))


def _candidate_rows(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return (item_id, row) of the documents on each item's candidate lists that are not shared."""
    documents = frames["documents"]
    own = documents[~documents["shared"].to_numpy(dtype=bool)]
    column = row_columns(documents)[0]
    cell_of = frames["queries"][["item_id", "query_id", *CELL]]
    listed = frames["candidates"].merge(cell_of, on=["item_id", "query_id"])
    found = listed.merge(own[[*CELL, "doc_id", column]], on=[*CELL, "doc_id"])
    return found[["item_id", column]].set_axis(["item_id", "row"], axis=1)
