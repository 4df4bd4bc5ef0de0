"""What a model did on a selection: outcomes of per-item tasks, observations of set metrics."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite_assets.outcomes.scoring import observe, score_pool
from mteblite_assets.pools.pool import Pool


def observe_selection(
    kind: str,
    restricted: Pool,
    vectors: np.ndarray,
    selection: pd.DataFrame,
    *,
    similarity: str = "cosine",
) -> np.ndarray:
    """Return a model's results on a selection, in the order of its rows.

    Args:
        kind: `per_item` or `set_metric`.
        restricted: the pool cut to the selected items (`pools.restriction.restrict`).
        vectors: (n_texts, dim) of the cut pool's texts.
        selection: item_id in rank order.
        similarity: see `score_pool`.

    Returns:
        (k,) outcomes, or (k, d) observations.
    """
    if kind == "per_item":
        found = score_pool(restricted, vectors, similarity=similarity).outcomes
    else:
        found = observe(restricted, vectors)
    place = pd.Series(np.arange(len(restricted.items)), index=restricted.items["item_id"])
    return found[place.loc[selection["item_id"]].to_numpy()]
