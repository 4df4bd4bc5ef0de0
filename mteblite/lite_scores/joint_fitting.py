"""Fit the joint calibration of a suite on its reference models, with intervals that hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mteblite.calibrations.joint import Blup, fit_blup
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.lite_scores.joint_scores import (
    JointRelease,
    conformal_factors,
    joint_json,
)
from mteblite.lite_scores.macro_release import fit_macro, macro_json
from mteblite.validation.conformal import LEVEL, HalfWidth
from mteblite.validation.folds import Fold, family_by_model, family_folds
from mteblite.validation.joint_folds import JointFolds
from mteblite.validation.lomo import MIN_TRAINING_MODELS, Settings, refits_of
from mteblite.validation.refit import TaskRefits
from mteblite.validation.targets import target_weights

EVERYTHING = Fold("", frozenset())
"""All reference models train; a family cannot be called that."""


def fit_joint(
    evidences: Sequence[TaskEvidence],
    variant: Variant,
    settings: Settings,
    *,
    refits: dict[str, TaskRefits] | None = None,
    level: float = LEVEL,
) -> JointRelease:
    """Fit the joint calibration that goes with the tasks that `fit_task` makes of the same variant.

    Args:
        evidences: the suite's tasks with the kept reference models.
        variant: with calibration `blup`.
        settings: K, seed, public scores.
        refits: pass the dict of the validation to share its work.
        level: coverage of the intervals.

    Raises:
        ValueError: the variant has another calibration.
    """
    if variant.calibration != "blup":
        raise ValueError(f"{variant} has no joint calibration to release: add +blup")
    from threadpoolctl import threadpool_limits

    families = family_by_model(evidences)
    folds = [EVERYTHING, *(family_folds(families) if len(set(families.values())) > 1 else [])]
    joint = JointFolds(evidences, [variant], settings.public)
    shared = {} if refits is None else refits
    with threadpool_limits(limits=1):
        for evidence in sorted(evidences, key=lambda e: e.task):
            task = shared.setdefault(evidence.task, refits_of(evidence, settings))
            for fold in folds:
                task.k = settings.k_for(fold, evidence.task)
                joint.add(task, fold, MIN_TRAINING_MODELS)
            task.forget_fits()
        tasks, data = joint.training(EVERYTHING, variant)
        types = types_of([e for e in evidences if e.task in tasks])
        factors = _factors(joint, variant, folds[1:], tasks, types, level)
    return JointRelease(tuple(tasks), types, fit_blup(data), factors, level)


def fit_release(
    evidences: Sequence[TaskEvidence],
    variant: Variant,
    settings: Settings,
    k_by_task: Mapping[str, int],
    level: float = LEVEL,
) -> tuple[tuple[str, ...], str]:
    """Fit the calibration over all tasks that a variant asks for; return its tasks and its JSON.

    Args:
        evidences: the suite's tasks with the kept reference models.
        variant: with a calibration in `JOINT`.
        settings: those of the validation.
        k_by_task: items that were selected of each task for the release (by token: K).
        level: coverage of the intervals.

    Raises:
        ValueError: the variant has no calibration over all tasks.
    """
    of_fold = settings.k_of_fold

    def counts(fold: Fold) -> Mapping[str, int]:
        if fold.name == EVERYTHING.name or of_fold is None:
            return k_by_task
        return of_fold(fold)

    own = replace(settings, k_of_fold=counts)
    if variant.calibration == "blup":
        release = fit_joint(evidences, variant, own, level=level)
        return release.tasks, joint_json(release)
    if variant.calibration != "macro":
        raise ValueError(f"{variant} has no calibration over all tasks to release")
    from threadpoolctl import threadpool_limits

    joint = JointFolds(evidences, [variant], settings.public)
    with threadpool_limits(limits=1):
        for evidence in sorted(evidences, key=lambda e: e.task):
            task = refits_of(evidence, own)
            task.k = own.k_for(EVERYTHING, evidence.task)
            joint.add(task, EVERYTHING, MIN_TRAINING_MODELS)
        tasks, data = joint.training(EVERYTHING, variant)
    return tuple(tasks), macro_json(fit_macro(tuple(tasks), types_of(evidences), data))


def _factors(
    joint: JointFolds,
    variant: Variant,
    folds: Sequence[Fold],
    tasks: list[str],
    types: Mapping[str, str],
    level: float,
) -> dict[str, HalfWidth]:
    """Conformal factors from every family held out in turn."""
    targets = target_weights(tasks, types, with_types=True)
    errors: list[np.ndarray] = []
    deviations: list[np.ndarray] = []
    names: list[str] = []
    for fold in folds:
        known, data = joint.training(fold, variant)
        if known != tasks:
            continue  # a task that only this family has: its macro mean is another one
        _, estimates, actual = joint.held_out(fold, variant)
        blup: Blup = fit_blup(data)
        found = blup.predict(estimates)
        pairs = [found.combined(w) for w in targets.values()]
        truth = [_mean(actual, w) for w in targets.values()]
        errors.append(np.column_stack([m - t for (m, _), t in zip(pairs, truth, strict=True)]))
        deviations.append(np.column_stack([sd for _, sd in pairs]))
        names += [fold.name] * len(estimates)
    if not errors:
        return {}
    return conformal_factors(
        np.concatenate(errors), np.concatenate(deviations), names, list(targets), level=level
    )


def _mean(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted mean; NaN where a needed task is missing."""
    needed = weights > 0
    return np.asarray(scores[:, needed] @ weights[needed])
