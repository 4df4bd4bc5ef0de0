"""Results of a model on a selection: outcomes of per-item tasks, observations of set metrics."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.pools.pool import Pool
from mteblite.task_types.scoring import observe, score_pool


def observe_selection(
    kind: str,
    restricted: Pool,
    vectors: np.ndarray,
    selection: pd.DataFrame,
    *,
    similarity: str = "cosine",
) -> np.ndarray:
    """Return a model's results on a selection in rank order: (k,) outcomes or (k, d) observations.

    The pool is restricted to the selected items (`pools.restriction.restrict`), and the vectors
    (n_texts, dim) are those of its texts.
    """
    if kind == "per_item":
        found = score_pool(restricted, vectors, similarity=similarity).outcomes
    else:
        found = observe(restricted, vectors)
    place = pd.Series(np.arange(len(restricted.items)), index=restricted.items["item_id"])
    return found[place.loc[selection["item_id"]].to_numpy()]


def observation_rows(task: str, selection: pd.DataFrame, observed: np.ndarray) -> pd.DataFrame:
    """Return a model's results (k,) or (k, d) on a selection, both in rank order, as rows.

    The columns are task, item_id, rank and observed (a list).
    """
    values = np.asarray(observed, dtype=float).reshape(len(selection), -1)
    return pd.DataFrame(
        {
            "task": task,
            "item_id": selection["item_id"].to_numpy(),
            "rank": np.arange(1, len(selection) + 1),
            "observed": [row.tolist() for row in values],
        }
    )


def observed_from_rows(rows: pd.DataFrame, kind: str) -> np.ndarray:
    """Return (k,) outcomes (`per_item`) or (k, d) observations from `observation_rows`."""
    values = np.array([list(v) for v in rows.sort_values("rank")["observed"]], dtype=float)
    return values[:, 0] if kind == "per_item" else values
