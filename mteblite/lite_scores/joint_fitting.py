"""Fit the joint calibration of a suite, with intervals from held-out families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mteblite.calibrations.blup import Blup
from mteblite.calibrations.levels import JOINT
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.lite_scores.joint_calibration import JointCalibration, conformal_factors
from mteblite.validation.conformal import LEVEL, HalfWidth
from mteblite.validation.folds import Fold, family_by_model, family_folds
from mteblite.validation.joint_folds import JointFolds
from mteblite.validation.lomo import MIN_TRAINING_MODELS, Settings, refits_of
from mteblite.validation.targets import combine, target_weights

EVERYTHING = Fold("", frozenset())
"""The fold of a release, in which all reference models train. No family has an empty name."""


def fit_joint(
    evidences: Sequence[TaskEvidence],
    variant: Variant,
    settings: Settings,
    k_by_task: Mapping[str, int] | None = None,
    level: float = LEVEL,
) -> JointCalibration:
    """Fit the joint calibration for the tasks of `TaskFits.fitted`.

    Settings are those of the validation. `k_by_task` is the K of each task's selection on all
    models; None = as in the folds.

    Raises:
        ValueError: the variant has no joint calibration.
    """
    if variant.calibration not in JOINT:
        raise ValueError(f"{variant} has no joint calibration: add +{JOINT[0]}")
    from threadpoolctl import threadpool_limits

    families = family_by_model(evidences)
    folds = [EVERYTHING, *(family_folds(families) if len(set(families.values())) > 1 else [])]
    joint = JointFolds(evidences, [variant], settings.public)
    with threadpool_limits(limits=1):
        for evidence in sorted(evidences, key=lambda e: e.task):
            task = refits_of(evidence, settings)
            for fold in folds:
                released = k_by_task if fold is EVERYTHING else None
                task.fits.k = (released or settings.counts(fold))[evidence.task]
                joint.add(task, fold, MIN_TRAINING_MODELS)
        tasks, data = joint.training(EVERYTHING, variant)
        types = types_of([e for e in evidences if e.task in tasks])
        factors = _factors(joint, variant, folds[1:], tasks, types, level)
    return JointCalibration(tuple(tasks), types, Blup.fit(data), factors, level)


def _factors(
    joint: JointFolds,
    variant: Variant,
    folds: Sequence[Fold],
    tasks: list[str],
    types: Mapping[str, str],
    level: float,
) -> dict[str, HalfWidth]:
    """Return conformal factors from every family held out in turn."""
    targets = target_weights(tasks, types, with_types=True)
    errors: list[np.ndarray] = []
    deviations: list[np.ndarray] = []
    names: list[str] = []
    for fold in folds:
        known, data = joint.training(fold, variant)
        if known != tasks:
            continue  # only this family has some task, so its macro mean is over fewer tasks
        _, estimates, actual = joint.held_out(fold, variant)
        found = Blup.fit(data).predict(estimates)
        pairs = [found.combined(w) for w in targets.values()]
        full = [combine(actual, w) for w in targets.values()]
        errors.append(np.column_stack([m - f for (m, _), f in zip(pairs, full, strict=True)]))
        deviations.append(np.column_stack([sd for _, sd in pairs]))
        names += [fold.name] * len(estimates)
    if not errors:
        return {}
    return conformal_factors(
        np.concatenate(errors), np.concatenate(deviations), names, list(targets), level=level
    )
