"""Nothing of a fold knows the models that it holds out: every registered method, both presets.

A fold's fit, items, weights, lines and joint layers show in what it says of the training models and
of probes. These must be equal, bit for bit, when the held-out family's outcomes, observations, pool
and full scores are replaced.
"""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pandas as pd
import pytest
from support.fits import refits
from support.zoo import make_task, observed_task

from mteblite.calibrations.blup import Blup
from mteblite.calibrations.levels import ALL_CALIBRATIONS, JOINT
from mteblite.calibrations.registry import ESTIMATORS, SET_ESTIMATORS
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.selections.registry import SELECTORS
from mteblite.selections.sharing import Sharing
from mteblite.validation.fold_counts import counts_of_fold
from mteblite.validation.folds import Fold, make_folds, mean_scores
from mteblite.validation.joint_folds import JointFolds, PublicScores
from mteblite.validation.lomo import Settings, predict_protocol
from mteblite.validation.nested import predict_nested
from mteblite.validation.presets import packaged_presets
from mteblite.validation.refit import TaskRefits
from mteblite.validation.variants import BASELINES, Baseline, suite_variants

K = 12
PER_ITEM = [
    Variant(s, e, "strat", c) for s, e, c in product(SELECTORS, ESTIMATORS, ALL_CALIBRATIONS)
]
SETS = [
    Variant("strat", "mean", s, c, e)
    for s, e, c in product(SELECTORS, SET_ESTIMATORS, ALL_CALIBRATIONS)
]
PRESETS = packaged_presets()
RESPONSE_MODELS = ("auto", "linear_gaussian")


def suite() -> list[TaskEvidence]:
    return [
        make_task("A", n_items=60),
        make_task("B", "Classification", n_items=60, binary=True),
        dataclasses.replace(observed_task("STS"), task="C"),
        dataclasses.replace(observed_task("PairClassification"), task="D"),
    ]


def replaced(evidence: TaskEvidence, rows: np.ndarray) -> TaskEvidence:
    """Everything else about the models in `rows`."""
    rng = np.random.default_rng(11)
    outcomes, scores = evidence.outcomes.copy(), evidence.full_scores.copy()
    outcomes[rows] = rng.integers(0, 2, size=outcomes[rows].shape)
    scores[rows] = rng.random(rows.sum())
    seen = evidence.observations
    if seen is not None:
        seen = tuple(
            rng.random(o.shape).astype(o.dtype) if r else o for o, r in zip(seen, rows, strict=True)
        )
    pools = np.where(rows, rng.random(len(rows)), evidence.pool_scores)
    return dataclasses.replace(
        evidence, outcomes=outcomes, full_scores=scores, pool_scores=pools, observations=seen
    )


def family_of(evidence: TaskEvidence, *names: str) -> np.ndarray:
    return np.isin(evidence.families, names)


def costs_of(evidence: TaskEvidence) -> np.ndarray:
    return np.random.default_rng(2).integers(5, 90, size=len(evidence.items)).astype(float)


def refits_of(
    evidence: TaskEvidence, response_model: str = "auto", *, by_token: bool = False
) -> TaskRefits:
    costs = costs_of(evidence)
    return refits(
        evidence, K, 0, response_model=response_model, costs=costs if by_token else None,
        random_draws=2, token_costs=costs,
    )  # fmt: skip


def check_task(
    evidence: TaskEvidence, choices: list, response_model: str = "auto", *, by_token: bool = False
) -> None:
    """Training models are told the same, whatever the held-out family did."""
    held_out = family_of(evidence, "f00")
    tasks = [
        refits_of(e, response_model, by_token=by_token)
        for e in (evidence, replaced(evidence, held_out))
    ]
    made = [task.predict_many(~held_out, choices) for task in tasks]
    assert set(made[0]) == {str(c) for c in choices}
    changed = 0
    for name, before in made[0].items():
        np.testing.assert_array_equal(before[:, ~held_out], made[1][name][:, ~held_out], name)
        changed += not np.array_equal(before[:, held_out], made[1][name][:, held_out])
    # The replacement is not without effect where it may have one.
    assert changed > 0.9 * len(made[0])
    for choice in choices:
        if (isinstance(choice, Baseline) and not choice.joint) or not is_joint(choice):
            continue
        for before, after in zip(*(t.start(~held_out, choice) for t in tasks), strict=True):
            np.testing.assert_array_equal(before[~held_out], after[~held_out], str(choice))


def is_joint(choice: Variant | Baseline) -> bool:
    return choice.joint if isinstance(choice, Baseline) else choice.calibration in JOINT


# --- single tasks ----------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["A", "B"])
def test_every_selector_estimator_and_calibration_of_per_item_tasks(task):
    (evidence,) = [e for e in suite() if e.task == task]
    check_task(evidence, [*PER_ITEM, *suite_variants()])


@pytest.mark.parametrize("task", ["C", "D"])
def test_every_selector_estimator_and_calibration_of_set_metrics(task):
    (evidence,) = [e for e in suite() if e.task == task]
    check_task(evidence, [*SETS, *suite_variants()])


@pytest.mark.parametrize("task", list("ABCD"))
def test_every_selector_that_is_paid_by_token(task):
    (evidence,) = [e for e in suite() if e.task == task]
    estimators = product(("mean", "gp"), ("linear", "crossfit", "blup"))
    choices = [Variant(s, e, s, c) for s, (e, c) in product(SELECTORS, estimators)]
    check_task(evidence, [*choices, *BASELINES], by_token=True)


@pytest.mark.parametrize("response_model", RESPONSE_MODELS)
def test_every_response_model(response_model):
    choices = [Variant(s, e, "strat") for s, e in product(SELECTORS, ("pirt", "gp", "switch"))]
    check_task(suite()[0], choices, response_model)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_variant_of_the_presets(name):
    for evidence in suite():
        check_task(evidence, list(PRESETS[name].variants))


# --- all tasks of a fold together ------------------------------------------------------------


def public_scores() -> PublicScores:
    """Further models, among them one of the held-out family."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.random((9, 4)), columns=list("ABCD"))
    table.insert(0, "family", [*(f"p{i}" for i in range(8)), "f00"])
    table.insert(0, "model", [f"public{i}" for i in range(9)])
    return PublicScores(table)


def joint_choices() -> list[Variant | Baseline]:
    wanted = [
        Variant(s, e, s, c, t)
        for (s, e), c, t in product(
            [*((s, "mean") for s in SELECTORS), *(("anchor", e) for e in ESTIMATORS)],
            JOINT,
            SET_ESTIMATORS,
        )
    ]
    chosen = [v for preset in PRESETS.values() for v in preset.variants if is_joint(v)]
    named = {str(c): c for c in (*wanted, *chosen, *BASELINES) if is_joint(c)}
    return list(named.values())


def test_what_joint_layers_learn_and_say_of_a_probe():
    evidences, choices = suite(), joint_choices()
    assert {c.calibration for c in choices if isinstance(c, Variant)} == set(JOINT)
    fold = Fold("f00", frozenset(m for m in evidences[0].models if m.startswith("f00")))
    public = public_scores()
    other = public.table.copy()
    other.loc[other["family"] == "f00", list("ABCD")] = 0.99
    versions = [
        (evidences, public),
        ([replaced(e, family_of(e, "f00")) for e in evidences], PublicScores(other)),
    ]
    made = []
    for tasks, scores in versions:
        joint = JointFolds(tasks, choices, scores)
        for evidence in tasks:
            joint.add(refits_of(evidence), fold, 2)
        made.append([joint.training(fold, choice) for choice in choices])
    probe = np.random.default_rng(6).random((3, 4))
    probe[1, 2] = np.nan
    for choice, (names, before), (other_names, after) in zip(choices, *made, strict=True):
        assert names == other_names == list("ABCD")
        for field in ("cross_fitted", "scores", "public_scores"):
            first, second = getattr(before, field), getattr(after, field)
            np.testing.assert_array_equal(first, second, f"{choice} {field}")
        assert before.families == after.families
        assert "f00" not in {*before.families, *before.public_families}
        assert len(before.public_scores) == 8
        if isinstance(choice, Variant):
            told = [Blup.fit(data).predict(probe).mean for data in (before, after)]
            np.testing.assert_array_equal(*told)


def settings_of(evidences: list[TaskEvidence], *, by_token: bool = False) -> Settings:
    """K of every task; or tokens that each fold shares out by what its training models did."""
    counts, costs = {e.task: K for e in evidences}, {e.task: costs_of(e) for e in evidences}
    sharing = Sharing(evidences, {t: float(c.mean()) for t, c in costs.items()}, counts, 0)
    return Settings(
        counts, 0, public_scores(), random_draws=2,
        token_costs=costs if by_token else {},
        k_of_fold=counts_of_fold(sharing, families(evidences)) if by_token else None,
        by_token=by_token,
    )  # fmt: skip


@pytest.mark.parametrize("by_token", [False, True], ids=["by_k", "by_token"])
@pytest.mark.parametrize("protocol", ["family_lomo", "model_lomo", "frontier"])
def test_predictions_do_not_know_the_scores_that_they_are_judged_by(protocol, by_token):
    """Outcomes stay, full scores of the held-out models change: their predictions stay."""
    evidences = suite()
    choices = [*suite_variants(), *(v for p in PRESETS.values() for v in p.variants)]
    folds = make_folds(protocol, families(evidences), mean_scores(evidences))
    fold = folds[-1]
    hidden = fold.held_out | fold.excluded

    def predictions(tasks: list[TaskEvidence]) -> pd.DataFrame:
        frame = predict_protocol(tasks, choices, protocol, settings_of(tasks, by_token=by_token))
        return frame[frame["fold"] == fold.name].drop(columns="actual")

    # On the frontier, hidden models must stay the best: all of their ranks decide the fold.
    shifted = [
        dataclasses.replace(
            e, full_scores=np.where([m in hidden for m in e.models], e.full_scores + 0.3,
                                    e.full_scores)
        )
        for e in evidences
    ]  # fmt: skip
    before, after = predictions(evidences), predictions(shifted)
    assert {str(c) for c in choices} <= set(before["variant"])
    pd.testing.assert_frame_equal(before, after, check_exact=True)


def families(evidences: list[TaskEvidence]) -> dict[str, str]:
    return {m: f for e in evidences for m, f in zip(e.models, e.families, strict=True)}


def test_the_frontier_does_not_know_those_between_either():
    evidences = suite()
    (fold,) = make_folds("frontier", families(evidences), mean_scores(evidences))
    assert fold.excluded
    for evidence in evidences:
        between = np.array([m in fold.excluded for m in evidence.models])
        train = np.array([fold.trains(m) for m in evidence.models])
        choices = [v for p in PRESETS.values() for v in p.variants]
        made = [
            refits_of(e).predict_many(train, choices)
            for e in (evidence, replaced(evidence, between))
        ]
        for name, before in made[0].items():
            np.testing.assert_array_equal(before[:, ~between], made[1][name][:, ~between], name)


# --- nested ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "by_token"),
    [("best", False), ("seed", False), pytest.param("best", True, marks=pytest.mark.long)],
)
def test_nested_choice_and_predictions_of_the_presets(name, by_token):
    evidences, preset = suite(), PRESETS[name]
    rows = [family_of(e, "f00") for e in evidences]
    scored = [
        dataclasses.replace(e, full_scores=np.where(r, 0.9, e.full_scores))
        for e, r in zip(evidences, rows, strict=True)
    ]
    all_replaced = [replaced(e, r) for e, r in zip(evidences, rows, strict=True)]
    made = [
        predict_nested(
            tasks, preset.variants, settings_of(tasks, by_token=by_token), patience=preset.patience
        )
        for tasks in (evidences, scored, all_replaced)
    ]
    chosen = [c.set_index("fold").loc["f00"] for _, c in made]
    pd.testing.assert_series_equal(chosen[0], chosen[1], check_exact=True)
    pd.testing.assert_series_equal(chosen[0], chosen[2], check_exact=True)
    first, second = (
        f[f["fold"] == "f00"].drop(columns="actual").reset_index(drop=True) for f, _ in made[:2]
    )
    pd.testing.assert_frame_equal(first, second, check_exact=True)
