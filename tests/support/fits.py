"""Short ways to fit, select, refit and validate in tests, with the options that a test varies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mteblite.calibrations.estimator import Reference
from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.registry import Statistic, find_estimator, make_context
from mteblite.calibrations.task_fit import TaskFits, fits_of
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.lite_scores.prediction import predict_tasks
from mteblite.task_types.scoring import set_statistic
from mteblite.validation.lomo import Choice, Settings, predict_protocol
from mteblite.validation.refit import TaskRefits


def task_fits(
    evidence: TaskEvidence, k: int, rng_keys: tuple[str | int, ...], **options: Any
) -> TaskFits:
    """Return the fits of a task, with attributes of `TaskFits` as options."""
    fits = fits_of(evidence, k, rng_keys)
    for name, value in options.items():
        setattr(fits, name, value)
    return fits


def fit_task(
    evidence: TaskEvidence,
    variant: Variant,
    k: int,
    rng_keys: tuple[str | int, ...],
    **options: Any,
) -> FittedTask:
    """Return a task fitted on all its models."""
    return task_fits(evidence, k, rng_keys, **options).fitted(variant)


def refits(
    evidence: TaskEvidence,
    k: int,
    seed: int,
    statistic: Statistic = set_statistic,
    *,
    response_model: str = "auto",
    costs: np.ndarray | None = None,
    **options: Any,
) -> TaskRefits:
    """Return the refits of a task, with attributes of `TaskRefits` as options."""
    fits = TaskFits(evidence, k, (seed,), statistic, response_model, costs)
    return TaskRefits(fits, seed, **options)


def predict_held_out(
    evidences: Sequence[TaskEvidence],
    variants: Sequence[Choice],
    k_by_task: Mapping[str, int],
    protocol: str,
    seed: int,
    *,
    refits: dict[str, TaskRefits] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Predict held-out models under one protocol, with attributes of `Settings` as options."""
    settings = Settings(k_by_task, seed, **options)
    return predict_protocol(
        evidences, variants, protocol, settings, refits=refits, progress=progress
    )


def estimate(
    estimator: str,
    outcomes: np.ndarray,
    selection: pd.DataFrame,
    item_parameters: pd.DataFrame,
    items: pd.DataFrame,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    reference: Reference | None = None,
) -> float:
    """Return the raw estimate of one model on the tables of a per-item task."""
    context = make_context(selection, item_parameters, items, bounds=bounds, reference=reference)
    return float(find_estimator(estimator)(np.asarray(outcomes, float)[None, :], context)[0])


def predicted_by(fitted: FittedTask, observed: np.ndarray) -> float:
    """Return the predicted full score of one model on one task."""
    (score,) = predict_tasks([fitted], {fitted.task: observed})["predicted"]
    return float(score)
