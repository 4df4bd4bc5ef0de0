"""A partition whose rows hold no number where one must be is failed, and stores nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mteblite_assets.flow import ASSETS
from mteblite_assets.graph.computing import _check_written
from mteblite_assets.graph.declaration import NUMBERS, Produced, stage_asset
from mteblite_assets.graph.keys import Grain


def scores(**options: Any) -> Any:
    def compute(work: Any) -> Produced:
        """One row per task."""
        return Produced({})

    compute.__module__ = "mteblite_assets.lite_scores.assets"
    table = ["lite_scores.task_scores"]
    return stage_asset(grain=Grain.SUITE, tables=table, code_version="1", **options)(compute)


@pytest.mark.parametrize("bad", [np.nan, np.inf, None])
def test_a_score_that_is_no_number_is_refused(bad: float | None) -> None:
    rows = pd.DataFrame({"task": ["A", "B"], "predicted": [0.5, bad], "lower": [np.nan, 0.1]})
    produced = Produced({"lite_scores.task_scores": rows})
    with pytest.raises(
        ValueError, match=r"1 of 2 rows of lite_scores.task_scores .*`predicted`.*B"
    ):
        _check_written(scores(), produced)
    _check_written(scores(nullable=["predicted"]), produced)
    whole = rows.assign(predicted=0.5)
    _check_written(scores(), Produced({"lite_scores.task_scores": whole}))


def test_what_may_hold_nan_is_declared_where_it_is_needed() -> None:
    nullable = {asset.name: set(asset.nullable) for asset in ASSETS if asset.nullable}
    assert nullable == {
        "item_outcomes": {"outcome", "pool_score"},
        "outcome_matrix": {"pool_score"},
        "public_scores": {"main_score"},
        "item_parameters": {"slope", "intercept"},
        "lomo_predictions": {"predicted"},
    }
    assert set().union(*nullable.values()) <= NUMBERS
