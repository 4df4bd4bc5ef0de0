"""Budgets shared out over tasks: never more than they are, by nobody who is held out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.zoo import make_models, make_task, mean_statistic

from mteblite.selections.sharing import Sharing
from mteblite.validation.fold_counts import counts_of_fold
from mteblite.validation.folds import Fold, make_folds

FAMILIES = make_models(12, siblings=2)
COSTS = {"A": 30.0, "B": 1.0, "C": 2.0}
ASKED = dict.fromkeys("ABC", 20)


def suite():
    return [
        make_task("A", families=FAMILIES, n_items=150),
        make_task("B", "Classification", families=FAMILIES, n_items=150, binary=True),
        make_task("C", "STS", families=FAMILIES, n_items=150),
    ]


def share(evidences, **options):
    return Sharing(evidences, COSTS, ASKED, 0, statistic=mean_statistic, **options)


def test_the_same_tokens_go_to_what_is_cheap():
    found = share(suite()).counts()
    spent = sum(COSTS[t] * k for t, k in found.items())
    assert spent <= sum(COSTS.values()) * 20
    assert spent > 0.97 * sum(COSTS.values()) * 20
    assert found["A"] < 20 < found["B"]
    assert min(found.values()) >= 8


def test_a_given_budget_is_kept_and_one_too_small_is_refused():
    found = share(suite(), budget=1200.0).counts()
    assert sum(COSTS[t] * k for t, k in found.items()) <= 1200
    with pytest.raises(ValueError, match="a budget of 100 does not pay 8 items per task"):
        share(suite(), budget=100.0).counts()


def test_tasks_without_evidence_keep_what_was_asked_for():
    found = Sharing(suite()[1:], COSTS, ASKED | {"A": 7}, 0, statistic=mean_statistic).counts()
    assert found["A"] == 7


def test_what_hidden_families_did_changes_nothing():
    evidences, rng = suite(), np.random.default_rng(3)
    changed = []
    for e in evidences:
        rows = np.array(e.families) == "f00"
        outcomes, scores = e.outcomes.copy(), e.full_scores.copy()
        outcomes[rows] = rng.random(outcomes[rows].shape)
        scores[rows] = rng.random(rows.sum())
        seen = e.observations and tuple(o[:, None] for o in outcomes)
        changed.append(
            dataclasses.replace(e, outcomes=outcomes, full_scores=scores, observations=seen)
        )
    before, after = share(evidences), share(changed)
    assert before.counts({"f00"}) == after.counts({"f00"})
    assert before.spreads() != after.spreads()
    for protocol in ("family_lomo", "model_lomo"):
        for fold in make_folds(protocol, FAMILIES):
            if {FAMILIES[m] for m in fold.held_out} == {"f00"}:
                made = [counts_of_fold(s, FAMILIES)(fold) for s in (before, after)]
                assert made[0] == made[1]


def test_folds_of_one_group_select_equally_many_and_wide_folds_hide_their_own_alone():
    sharing = share(suite())
    of_fold = counts_of_fold(sharing, FAMILIES)
    folds = make_folds("family_lomo", FAMILIES)
    assert len({tuple(of_fold(f).items()) for f in folds}) <= 6
    wide = Fold("frontier", frozenset(m for m, f in FAMILIES.items() if f > "f04"))
    assert of_fold(wide) == sharing.counts({FAMILIES[m] for m in wide.held_out})
