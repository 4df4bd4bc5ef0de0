"""Fit the joint calibration of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mteblite.calibrations.blup import Blup
from mteblite.calibrations.levels import JOINT
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.validation.conformal import LEVEL
from mteblite.validation.folds import Fold
from mteblite.validation.joint_folds import JointFolds
from mteblite.validation.lomo import MIN_TRAINING_MODELS, Settings, refits_of

EVERYTHING = Fold("", frozenset())
"""The fold of a release, in which all reference models train. No family has an empty name."""


def fit_joint(
    evidences: Sequence[TaskEvidence],
    variant: Variant,
    settings: Settings,
    k_by_task: Mapping[str, int] | None = None,
    level: float = LEVEL,
) -> JointCalibration:
    """Fit the joint calibration for the tasks of `TaskFits.fitted`, yet without `with_widths`.

    Settings are those of the validation. `k_by_task` is the K of each task's selection on all
    models; None = as in the folds.

    Raises:
        ValueError: the variant has no joint calibration.
    """
    if variant.calibration not in JOINT:
        raise ValueError(f"{variant} has no joint calibration: add +{JOINT[0]}")
    from threadpoolctl import threadpool_limits

    joint = JointFolds(evidences, [variant], settings.public)
    counts = k_by_task or settings.counts(EVERYTHING)
    with threadpool_limits(limits=1):
        for evidence in sorted(evidences, key=lambda e: e.task):
            task = refits_of(evidence, settings)
            task.fits.k = counts[evidence.task]
            joint.add(task, EVERYTHING, MIN_TRAINING_MODELS)
        tasks, data = joint.training(EVERYTHING, variant)
    types = types_of([e for e in evidences if e.task in tasks])
    return JointCalibration(tuple(tasks), types, Blup.fit(data), {}, level)
