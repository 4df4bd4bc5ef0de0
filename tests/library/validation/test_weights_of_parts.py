"""Parts of an aggregate count as one task wherever the tasks of a suite are weighed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.zoo import make_models, make_task, mean_statistic

from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.selections.sharing import Sharing
from mteblite.validation.folds import mean_scores
from mteblite.validation.lomo import Settings
from mteblite.validation.nested import predict_nested
from mteblite.validation.out_of_range import training_ranges

FAMILIES = make_models(10, siblings=2)
OTHER = make_task("A", families=FAMILIES, n_items=60, seed=1)
WHOLE = make_task("F", families=FAMILIES, n_items=60)


def part(name: str, **changes: object) -> TaskEvidence:
    return dataclasses.replace(WHOLE, task=name, part_of="F", **changes)


ONE = [OTHER, WHOLE]
SPLIT = [OTHER, part("F1"), part("F2"), part("F3")]
"""The same with three copies in place of one task: every mean must be what it was."""


def apart(evidences: list[TaskEvidence]) -> list[TaskEvidence]:
    return [dataclasses.replace(e, part_of="") for e in evidences]


def test_parts_come_with_the_evidence_and_stay_with_fewer_models():
    assert types_of(SPLIT) == dict.fromkeys(["A", "F1", "F2", "F3"], "Retrieval")
    assert types_of(SPLIT).parts == {"F1": "F", "F2": "F", "F3": "F"}
    few = SPLIT[1].only_models(np.arange(len(WHOLE.models)) < 3)
    assert types_of([few]).parts == {"F1": "F"}


def test_ranges_of_the_training_models():
    expected = training_ranges(ONE, "family_lomo")
    pd.testing.assert_frame_equal(training_ranges(SPLIT, "family_lomo"), expected)
    assert not np.allclose(training_ranges(apart(SPLIT), "family_lomo")["low"], expected["low"])


def test_mean_scores_that_order_families_for_the_frontier():
    assert mean_scores(SPLIT) == pytest.approx(mean_scores(ONE))
    assert mean_scores(apart(SPLIT)) != pytest.approx(mean_scores(ONE))


@pytest.mark.parametrize("lacking", [False, True])
def test_errors_that_the_nested_choice_goes_by(lacking):
    """`lacking`: no model has all tasks, so that errors are means over those that each has."""
    suites = [ONE, SPLIT, apart(SPLIT)]
    if lacking:
        alone = np.array([m < "f05" for m in sorted(FAMILIES)])
        rest = part("G", full_scores=np.where(alone, np.nan, WHOLE.full_scores))
        last = dataclasses.replace(
            OTHER, task="Z", full_scores=np.where(alone, OTHER.full_scores, np.nan)
        )
        suites = [[*s, dataclasses.replace(rest, part_of=""), last] for s in suites]

    def inner_errors(evidences: list[TaskEvidence]) -> np.ndarray:
        settings = Settings(dict.fromkeys([e.task for e in evidences], 10), 0)
        _, chosen = predict_nested(evidences, ["fisher/mean/strat"], settings)
        return chosen["inner_mae"].to_numpy()

    one, split, counted = (inner_errors(s) for s in suites)
    np.testing.assert_allclose(split, one)
    assert not np.allclose(counted, one)


def test_a_budget_shared_out():
    copies = [dataclasses.replace(WHOLE, task=t, part_of=p) for t, p in
              (("A", ""), ("F1", "F"), ("F2", "F"))]  # fmt: skip
    asked, costs = dict.fromkeys(["A", "F1", "F2"], 20), dict.fromkeys(["A", "F1", "F2"], 5.0)

    def counts(evidences: list[TaskEvidence]) -> dict[str, int]:
        return Sharing(evidences, costs, asked, 0, statistic=mean_statistic).counts()

    alike = counts(apart(copies))
    assert max(alike.values()) - min(alike.values()) <= 1
    found = counts(copies)
    assert found["A"] > 1.2 * found["F1"]
    assert abs(found["F1"] - found["F2"]) <= 1
