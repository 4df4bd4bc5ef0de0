"""Outcomes of all models of a pool: one list per model in the order of item_id."""

from __future__ import annotations

import pandas as pd


def matrix_rows(outcomes: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return one row per model: model, pool_score, outcomes (list by item_id) and observations.

    Outcomes are rows of model, item_id and outcome. Scores are rows of model, pool_score and
    observations (file of the set-metric observations or "").

    Raises:
        ValueError: a model lacks an item; the message names the model.
    """
    wide = outcomes.pivot(index="model", columns="item_id", values="outcome")
    seen = outcomes.groupby("model")["item_id"].nunique()
    short = seen[seen < wide.shape[1]]
    if len(short):
        raise ValueError(
            f"model {short.index[0]!r} has outcomes on {short.iloc[0]} of {wide.shape[1]} items: "
            "they come from another pool; materialize its outcomes again"
        )
    wide = wide.sort_index(axis=0).sort_index(axis=1)
    rows = scores.set_index("model")[["pool_score", "observations"]].loc[wide.index]
    rows["outcomes"] = [list(map(float, row)) for row in wide.to_numpy()]
    return rows.reset_index()
