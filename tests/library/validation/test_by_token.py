"""Selections for tokens inside folds: never dearer than K average items, and as a release's."""

from __future__ import annotations

import numpy as np
import pytest
from support.fits import fit_task, predicted_by, refits, task_fits
from support.zoo import make_task, mean_statistic

from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.selections.registry import SELECTORS

K = 10
TASKS = [
    make_task("Graded", n_items=90, cells=2),
    make_task("Binary", "Classification", binary=True, n_items=90),
    make_task("Pairs", "PairClassification", n_items=90),
]


def costs_of(evidence: TaskEvidence) -> np.ndarray:
    return np.random.default_rng(5).integers(5, 200, size=len(evidence.items)).astype(float)


@pytest.mark.parametrize("evidence", TASKS, ids=lambda e: e.task)
@pytest.mark.parametrize("method", SELECTORS)
def test_a_training_set_spends_at_most_what_k_average_items_cost(evidence, method):
    costs, train = costs_of(evidence), np.array(evidence.families) != "f00"
    chosen = task_fits(evidence, K, (0,), costs=costs).training(train).select(method)[1]
    budget = K * costs.mean()
    assert costs[chosen].sum() <= budget * (1 + 1e-9)
    assert costs[chosen].sum() > budget - 2 * costs.max()
    # In other units the same items are chosen.
    scaled = task_fits(evidence, K, (0,), costs=costs / 64.0)
    assert scaled.training(train).select(method)[1].tolist() == chosen.tolist()
    whole = task_fits(evidence, 90, (0,), costs=costs)
    assert whole.training(train).select(method)[0] == "all"


@pytest.mark.parametrize("evidence", TASKS, ids=lambda e: e.task)
@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("fisher/gp/anchorset", "f03"),
        ("anchor/mean/strat", "f03"),
        # Without the family, inner folds are dealt otherwise: compare what all models teach.
        ("fisher/mean/strat+crossfit", "none"),
    ],
)
def test_a_fold_equals_the_release_made_of_its_training_models(evidence, name, left_out):
    variant, costs = Variant.parse(name), costs_of(evidence)
    train = np.array(evidence.families) != left_out
    fitted = fit_task(
        evidence.only_models(train), variant, K, (0,), statistic=mean_statistic, costs=costs
    )
    task = refits(evidence, K, 0, mean_statistic, costs=costs)
    predicted = task.predict_many(train, [variant])[name][0]
    places = [int(i[1:]) for i in fitted.selection["item_id"]]
    assert costs[places].sum() <= K * costs.mean() * (1 + 1e-9)
    for place in range(len(train)):
        per_item = fitted.kind == "per_item"
        seen = evidence.outcomes[place] if per_item else evidence.observations[place]
        assert predicted[place] == pytest.approx(predicted_by(fitted, seen[places]), abs=1e-12)


def test_costs_that_are_alike_change_nothing_where_no_gain_is_weighed():
    evidence = TASKS[0]
    train = np.array(evidence.families) != "f00"
    choices = [Variant("anchor", "gp", "strat"), Variant("strat", "mean", "strat", "crossfit")]
    same = np.full(len(evidence.items), 17.0)
    made = [
        refits(evidence, K, 0, mean_statistic, costs=costs).predict_many(train, choices)
        for costs in (None, same)
    ]
    for choice in choices:
        np.testing.assert_array_equal(made[0][str(choice)], made[1][str(choice)])
