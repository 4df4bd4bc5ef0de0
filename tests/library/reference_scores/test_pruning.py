"""Families are thinned to worst, median and best."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mteblite.reference_scores.pruning import prune_families
from mteblite.suites.task_types import TaskTypes


def scores(rows: dict[str, dict[str, float]]) -> pd.DataFrame:
    return pd.DataFrame(
        [(m, t, s) for m, by_task in rows.items() for t, s in by_task.items()],
        columns=["model", "task", "main_score"],
    )


@pytest.mark.parametrize(
    ("n", "kept"),
    [
        (1, ["m0"]),
        (2, ["m0", "m1"]),
        (3, ["m0", "m1", "m2"]),
        (4, ["m0", "m1", "m3"]),
        (5, ["m0", "m2", "m4"]),
        (6, ["m0", "m2", "m5"]),
    ],
)
def test_keeps_worst_median_and_best(n, kept):
    full = scores({f"m{i}": {"A": 0.1 * i, "B": 0.1 * i} for i in range(n)})
    table = prune_families(full, {f"m{i}": "f" for i in range(n)})
    assert table.loc[table["kept"], "model"].tolist() == kept
    assert (table["n_in_family"] == n).all()


def test_ties_are_broken_by_name_whatever_the_row_order():
    full = scores({f"m{i}": {"A": 0.5} for i in range(5)})
    families = {f"m{i}": "f" for i in range(5)}
    expected = prune_families(full, families)
    shuffled = prune_families(full.sample(frac=1, random_state=0), dict(reversed(families.items())))
    pd.testing.assert_frame_equal(expected, shuffled)
    assert expected.loc[expected["kept"], "model"].tolist() == ["m0", "m2", "m4"]


def test_scores_are_compared_on_shared_tasks_only():
    # m3 looks best on its own two tasks because B is easy; on A, which all share, it is worst.
    full = scores({"m0": {"A": 0.4}, "m1": {"A": 0.3}, "m2": {"A": 0.2}, "m3": {"A": 0.1, "B": 1}})
    table = prune_families(full, dict.fromkeys(["m0", "m1", "m2", "m3"], "f")).set_index("model")
    assert table.loc["m3", "score"] == pytest.approx(0.1)
    assert table.index[table["kept"]].tolist() == ["m0", "m2", "m3"]


def test_parts_of_an_aggregate_count_as_one_task():
    # Of equal weight, the three parts would reverse the order, and m1 would be the median.
    rows = {"m0": 0.9, "m1": 0.6, "m2": 0.5, "m3": 0.4}
    full = scores({
        m: {"A": s, **dict.fromkeys(["F1", "F2", "F3"], 0.5 - 0.4 * s)} for m, s in rows.items()
    })  # fmt: skip
    families = dict.fromkeys(rows, "f")
    names = ["A", "F1", "F2", "F3"]
    types = TaskTypes(dict.fromkeys(names, "Retrieval"), dict.fromkeys(names[1:], "F"))
    table = prune_families(full, families, types).set_index("model")
    assert table.index[table["kept"]].tolist() == ["m0", "m2", "m3"]
    assert table.loc["m0", "score"] == pytest.approx((0.9 + 0.14) / 2)
    apart = prune_families(full, families).set_index("model")
    assert apart.index[apart["kept"]].tolist() == ["m0", "m1", "m3"]


def test_models_without_a_finite_score_are_not_kept_and_take_no_place():
    full = scores({"m0": {"A": 0.1}, "m1": {"A": np.nan}, "m2": {"A": np.inf}, "m3": {"A": 0.3}})
    table = prune_families(full, dict.fromkeys(["m0", "m1", "m2", "m3", "m4"], "f"))
    assert table.loc[table["kept"], "model"].tolist() == ["m0", "m3"]
    assert table["score"].isna().sum() == 3


def test_families_without_any_score_and_empty_input():
    table = prune_families(scores({}), {"a": "f", "b": "g"})
    assert table["kept"].tolist() == [False, False]
    assert prune_families(scores({}), {}).empty


def test_errors_name_the_model():
    with pytest.raises(ValueError, match="'m0' has full scores but no family"):
        prune_families(scores({"m0": {"A": 0.1}}), {})
    doubled = pd.concat([scores({"m0": {"A": 0.1}})] * 2)
    with pytest.raises(ValueError, match="m0 has two full scores for A"):
        prune_families(doubled, {"m0": "f"})
