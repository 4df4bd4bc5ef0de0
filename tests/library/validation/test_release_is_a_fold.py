"""What is released is what is validated: a fold that leaves nobody out equals the release."""

from __future__ import annotations

import numpy as np
import pytest
from support.zoo import make_models, make_task, mean_statistic, observed_task

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.levels import ALL_CALIBRATIONS, JOINT
from mteblite.calibrations.registry import ESTIMATORS, SET_ESTIMATORS
from mteblite.calibrations.task_fit import fits_of
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.joint_fitting import fit_joint
from mteblite.selections.registry import SELECTORS
from mteblite.validation.folds import Fold
from mteblite.validation.joint_folds import JointFolds
from mteblite.validation.lomo import Settings, predict_folds, refits_of

K, SUITE, SEED = 12, "released", 3
NOBODY = Fold("nobody", frozenset())
PLAIN = [c for c in ALL_CALIBRATIONS if c not in JOINT]
FAMILIES = make_models(14)
TASKS = [
    make_task("Graded", families=FAMILIES, n_items=60),
    make_task("Binary", "Classification", families=FAMILIES, binary=True, n_items=60),
    make_task("Similar", "STS", families=FAMILIES, n_items=60),
    observed_task("PairClassification"),
]


def settings(statistic=mean_statistic) -> Settings:
    counts = {e.task: K for e in TASKS}
    return Settings(counts, SEED, statistic=statistic, suite=SUITE)


def released(evidence: TaskEvidence, variant: Variant) -> FittedTask:
    """The task as the graph releases it, after a round trip through its stored form."""
    fits = fits_of(evidence, K, (SUITE, SEED))
    fits.statistic = mean_statistic
    fitted = FittedTask.from_json(fits.fitted(variant).to_json())
    object.__setattr__(fitted, "statistic", mean_statistic)
    return fitted


def observed(evidence: TaskEvidence, fitted: FittedTask) -> list[np.ndarray]:
    places = evidence.items.set_index("item_id").index.get_indexer(fitted.selection["item_id"])
    rows = evidence.outcomes if evidence.kind == "per_item" else evidence.observations
    return [np.asarray(row)[places] for row in rows]


@pytest.mark.parametrize("calibration", PLAIN)
@pytest.mark.parametrize("evidence", TASKS, ids=lambda e: e.task)
def test_a_fold_without_held_out_models_equals_the_release(evidence, calibration):
    estimators = ESTIMATORS if evidence.kind == "per_item" else SET_ESTIMATORS
    everyone = np.ones(len(evidence.models), dtype=bool)
    for selector in SELECTORS:
        for estimator in estimators:
            parts = (selector, estimator, "strat") if estimator in ESTIMATORS else (
                "strat", "mean", selector)  # fmt: skip
            set_estimator = estimator if estimator in SET_ESTIMATORS else "set_statistic"
            variant = Variant(*parts, calibration, set_estimator)
            fitted = released(evidence, variant)
            by_fold = refits_of(evidence, settings()).fits.calibrated(everyone, variant)
            raw = fitted.raw_many(observed(evidence, fitted))
            np.testing.assert_array_equal(fitted.calibration.apply(raw), by_fold, str(variant))


def test_one_model_alone_is_predicted_as_in_company():
    evidence = TASKS[1]
    variant = Variant("anchor", "gp", "strat")
    fitted = released(evidence, variant)
    everyone = np.ones(len(evidence.models), dtype=bool)
    by_fold = refits_of(evidence, settings()).fits.calibrated(everyone, variant)
    alone = [fitted.calibrated(o) for o in observed(evidence, fitted)]
    np.testing.assert_allclose(alone, by_fold, atol=1e-12, rtol=0)


def test_the_joint_calibration_of_a_fold_without_held_out_models_equals_the_release():
    evidences = [e for e in TASKS if e.families == TASKS[0].families]
    variant = Variant("strat_difficulty", "greg", "strat_difficulty", "blup")
    joint = fit_joint(evidences, variant, settings(), {e.task: K for e in evidences})
    stored = JointCalibration.from_json(joint.to_json())
    folds = JointFolds(evidences, [variant])
    for evidence in evidences:
        folds.add(refits_of(evidence, settings()), NOBODY, 2)
    everyone = Fold("nobody", frozenset(evidences[0].models))
    _, estimates, _ = folds.held_out(everyone, variant)
    fitted = [released(e, variant) for e in evidences]
    own = np.column_stack(
        [f.calibration.apply(f.raw_many(observed(e, f))) for e, f in
         sorted(zip(evidences, fitted, strict=True), key=lambda pair: pair[0].task)]
    )  # fmt: skip
    np.testing.assert_array_equal(own, estimates)
    from mteblite.calibrations.blup import Blup

    _, data = folds.training(NOBODY, variant)
    np.testing.assert_array_equal(
        stored.blup.predict(own).mean, Blup.fit(data).predict(estimates).mean
    )


def test_the_suite_enters_the_draws_of_folds_as_it_enters_those_of_the_release():
    variant = Variant("random", "mean", "random")
    evidence = TASKS[0]
    named, nameless = settings(), Settings({e.task: K for e in TASKS}, SEED)
    held_out = Fold("one", frozenset({evidence.models[0]}))
    rows = [
        predict_folds([evidence], [variant], [held_out], s, {})["predicted"].tolist()
        for s in (named, nameless)
    ]
    assert rows[0] != rows[1]
