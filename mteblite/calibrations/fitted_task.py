"""Fit, select and calibrate a task on its reference models; see `task_model.FittedTask`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from mteblite.calibrations.cross_fitted_task import cross_fitted_estimates, observed_on
from mteblite.calibrations.levels import CROSS_FITTED, JOINT, starting_line
from mteblite.calibrations.linear import Calibration, find_calibration
from mteblite.calibrations.registry import (
    AIMS_AT_FULL_SCORE,
    NEEDS_REFERENCE,
    Statistic,
    usable_estimator,
)
from mteblite.calibrations.set_estimators import check_not_degenerate
from mteblite.calibrations.task_model import FittedTask as FittedTask
from mteblite.calibrations.training_fit import reference_of
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit, fit_items, restrict, usable_models
from mteblite.selections.token_budget import choose
from mteblite.task_types.scoring import set_statistic


def fit_task(
    evidence: TaskEvidence,
    variant: Variant,
    k: int,
    rng_keys: tuple[str | int, ...],
    *,
    response_model: str = "auto",
    statistic: Statistic = set_statistic,
    costs: np.ndarray | None = None,
) -> FittedTask:
    """Fit, select and calibrate a task on its reference models.

    Args:
        evidence: reference models; those without a full score or outcomes are left out.
        variant: what to build. A joint calibration (`blup`) is made over the tasks of a suite;
            here its tasks get the cross-fitted line that it starts from.
        k: items to select.
        rng_keys: stable keys of the random draws, e.g. (suite, seed).
        response_model: see `fit_items`.
        statistic: the official set statistic.
        costs: tokens of each item, where items are chosen for tokens; see `choose`.

    Raises:
        ValueError: no model can be used, or the estimate is undefined for every one of them.
    """
    fit = fit_items(evidence, response_model)
    selection = choose(variant.selection(evidence.kind), evidence, fit, k, rng_keys, costs)
    return calibrate_variant(
        evidence, fit, selection, variant, rng_keys,
        response_model=response_model, statistic=statistic, k=k, costs=costs,
    )  # fmt: skip


def calibrate_variant(
    evidence: TaskEvidence,
    fit: ItemFit,
    selection: pd.DataFrame,
    variant: Variant,
    rng_keys: tuple[str | int, ...],
    *,
    response_model: str = "auto",
    statistic: Statistic = set_statistic,
    k: int | None = None,
    costs: np.ndarray | None = None,
) -> FittedTask:
    """Calibrate a selection as a variant asks for, cross-fitted where it does; see `fit_task`.

    Args:
        evidence: reference models.
        fit: their items.
        selection: the variant's selection on the fit.
        variant: whose estimator and calibration to use.
        rng_keys: those of the selection; inner fits select with them.
        response_model: see `fit_items`.
        statistic: the official set statistic.
        k: what the selection was chosen with, and inner fits are; None = its number of items.
        costs: tokens of each item, where items are chosen for tokens; see `choose`.
    """
    estimator = variant.estimator_for(evidence.kind)
    calibration = variant.calibration_for(
        usable_estimator(estimator, evidence.kind, usable=fit.usable)
    )
    held_out: np.ndarray | None = None
    if calibration in CROSS_FITTED or calibration in JOINT:
        calibration = CROSS_FITTED.get(calibration, starting_line(evidence.kind))
        held_out = cross_fitted_estimates(
            evidence, variant.selection(evidence.kind), estimator, k or len(selection), rng_keys,
            response_model=response_model, statistic=statistic, costs=costs,
        )  # fmt: skip
    return calibrate_task(
        evidence, fit, selection, estimator,
        calibration=calibration, statistic=statistic, cross_fitted=held_out,
    )  # fmt: skip


def calibrate_task(
    evidence: TaskEvidence,
    fit: ItemFit,
    selection: pd.DataFrame,
    estimator: str,
    *,
    calibration: str | None = None,
    statistic: Statistic = set_statistic,
    cross_fitted: np.ndarray | None = None,
) -> FittedTask:
    """Calibrate a selection on the reference models that have a full score and outcomes.

    Args:
        evidence: reference models.
        fit: their items, see `fit_items`.
        selection: see `select`.
        estimator: of per-item tasks; for set metrics a name in SET_ESTIMATORS, anything else means
            their official statistic. Without usable abilities, estimators that need them become
            `mean`.
        calibration: a name in CALIBRATIONS; by default `linear`, or `none` for estimators that aim
            at the full score themselves.
        statistic: the official set statistic.
        cross_fitted: (n_models with a full score and outcomes,) raw estimates to calibrate on, see
            `cross_fitted_estimates`; None = the estimates of the fit itself.

    Raises:
        ValueError: no model can be used, or the estimate is undefined for every one of them.
    """
    reference = restrict(evidence, usable_models(evidence))
    used = usable_estimator(estimator, evidence.kind, usable=fit.usable)
    if calibration is None:
        calibration = "none" if used in AIMS_AT_FULL_SCORE else "linear"
    unfinished = FittedTask(
        task=evidence.task,
        task_type=evidence.task_type,
        kind=evidence.kind,
        items=evidence.items,
        selection=selection.sort_values("rank", ignore_index=True),
        item_parameters=fit.item_parameters,
        estimator=used,
        calibration_method=calibration,
        calibration=Calibration(1.0, 0.0, float("nan"), 0),
        theta_mean=fit.theta_mean,
        theta_sd=fit.theta_sd,
        reference_low=float(reference.full_scores.min()),
        reference_high=float(reference.full_scores.max()),
        statistic=statistic,
        reference=reference_of(reference) if used in NEEDS_REFERENCE else None,
    )
    raw = cross_fitted
    try:
        check_not_degenerate(evidence.task_type, unfinished.selected_rows)
        if raw is None:
            raw = unfinished.raw_many(observed_on(reference, unfinished.selection))
        line = find_calibration(calibration)(raw, reference.full_scores)
    except ValueError as error:
        raise ValueError(f"{evidence.task}: {error}") from error
    return replace(unfinished, calibration=line)
