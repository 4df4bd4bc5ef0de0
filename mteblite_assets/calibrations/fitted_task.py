"""A task ready to score new models: its selection, item parameters, estimator and calibration.

Predictions of a new model use its outcomes on the selected items and nothing else of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mteblite_assets.calibrations.cross_fitted_task import cross_fitted_estimates, observed_on
from mteblite_assets.calibrations.estimator import Reference, legal_range
from mteblite_assets.calibrations.levels import CROSS_FITTED, JOINT, starting_line
from mteblite_assets.calibrations.linear import Calibration, find_calibration
from mteblite_assets.calibrations.registry import (
    AIMS_AT_FULL_SCORE,
    NEEDS_REFERENCE,
    SET_STATISTIC,
    Statistic,
    estimate_set,
    find_estimator,
    find_set_estimator,
    make_context,
    usable_estimator,
)
from mteblite_assets.calibrations.set_estimators import check_not_degenerate
from mteblite_assets.calibrations.training_fit import reference_of
from mteblite_assets.calibrations.variant import Variant
from mteblite_assets.item_parameters.evidence import TaskEvidence
from mteblite_assets.item_parameters.fitting import ItemFit, fit_items, restrict, usable_models
from mteblite_assets.outcomes.scoring import set_statistic
from mteblite_assets.selections.registry import select


@dataclass(frozen=True)
class FittedTask:
    """Everything that scoring a model on a task's selection needs.

    Attributes:
        task: task name.
        task_type: mteb's type.
        kind: `per_item` or `set_metric`.
        items: the pool's items: item_id, hf_subset, split, stratum, gold, pool_weight.
        selection: item_id, method, rank, weight, in rank order.
        item_parameters: of all pool items.
        estimator: name in ESTIMATORS, or `set_statistic`.
        calibration_method: `linear`, `offset` or `none`.
        calibration: fitted on the reference models.
        theta_mean: mean full score of the reference models.
        theta_sd: its standard deviation.
        reference_low: least full score of the reference models.
        reference_high: greatest.
        statistic: the official set statistic, unless a test passes its own.
        reference: the reference models, where the estimator is in NEEDS_REFERENCE.
    """

    task: str
    task_type: str
    kind: str
    items: pd.DataFrame
    selection: pd.DataFrame
    item_parameters: pd.DataFrame
    estimator: str
    calibration_method: str
    calibration: Calibration
    theta_mean: float
    theta_sd: float
    reference_low: float
    reference_high: float
    statistic: Statistic = set_statistic
    reference: Reference | None = None

    def raw(self, observed: np.ndarray) -> float:
        """Return the uncalibrated estimate of one model.

        Args:
            observed: on the rows of `selection`, in their order: outcomes (k,) of a per-item
                task (NaN = not observed), observations (k, d) of a set metric.
        """
        return float(self.raw_many([np.asarray(observed)])[0])

    def raw_many(self, observed: Sequence[np.ndarray]) -> np.ndarray:
        """Return raw estimates (n_models,) of several models; each as in `raw`."""
        for model in observed:
            if len(model) != len(self.selection):
                raise ValueError(
                    f"{self.task}: got outcomes on {len(model)} items; "
                    f"the selection has {len(self.selection)}"
                )
        if self.kind == "per_item":
            bounds = legal_range(self.task_type)
            context = make_context(
                self.selection,
                self.item_parameters,
                self.items,
                bounds=bounds,
                reference=self.reference,
            )
            return find_estimator(self.estimator)(np.array(observed, dtype=float), context)
        rows = self.selected_rows
        weights = self.selection["weight"].to_numpy(dtype=float)
        official = self.estimator == SET_STATISTIC
        statistic = self.statistic if official else find_set_estimator(self.estimator)
        return np.array(
            [
                estimate_set(self.task_type, model, rows, weights, statistic=statistic)
                for model in observed
            ]
        )

    @property
    def selected_rows(self) -> pd.DataFrame:
        """The rows of `items` of the selection, in its order."""
        rows = self.items.set_index("item_id", drop=False).loc[self.selection["item_id"]]
        return rows.reset_index(drop=True)

    def calibrated(self, observed: np.ndarray) -> float:
        """Return the calibrated estimate before clipping; see `raw`."""
        return float(self.calibration.apply(np.array([self.raw(observed)]))[0])

    def predict(self, observed: np.ndarray) -> float:
        """Return the predicted full score, clipped to the legal range; see `raw`."""
        return float(np.clip(self.calibrated(observed), *legal_range(self.task_type)))

    def out_of_range(self, observed: np.ndarray) -> bool:
        """Say whether the calibrated estimate lies beyond all reference models."""
        value = self.calibrated(observed)
        return bool(value < self.reference_low or value > self.reference_high)

    def calibration_row(self) -> dict[str, object]:
        """Return the row of `calibrations.calibrations`, all scalars."""
        return {
            "task": self.task,
            "method": self.calibration_method,
            "estimator": self.estimator,
            "slope": self.calibration.slope,
            "intercept": self.calibration.intercept,
            "residual_sd": self.calibration.residual_sd,
            "n_models": self.calibration.n_models,
            "theta_mean": self.theta_mean,
            "theta_sd": self.theta_sd,
            "reference_low": self.reference_low,
            "reference_high": self.reference_high,
        }

    @classmethod
    def from_tables(
        cls,
        *,
        task: str,
        task_type: str,
        kind: str,
        items: pd.DataFrame,
        selection: pd.DataFrame,
        item_parameters: pd.DataFrame,
        calibration: dict[str, object],
        statistic: Statistic = set_statistic,
        reference: Reference | None = None,
    ) -> FittedTask:
        """Rebuild a fitted task from its stored tables.

        Args:
            task: task name.
            task_type: mteb's type.
            kind: `per_item` or `set_metric`.
            items: the pool's items.
            selection: the selected items.
            item_parameters: of all pool items.
            calibration: a `calibration_row`.
            statistic: the official set statistic.
            reference: see `reference_of`, where the estimator is in NEEDS_REFERENCE.
        """
        number = {
            name: float(str(calibration[name]))
            for name in (
                *("slope", "intercept", "residual_sd"),
                *("theta_mean", "theta_sd", "reference_low", "reference_high"),
            )
        }
        line = (number.pop("slope"), number.pop("intercept"), number.pop("residual_sd"))
        return cls(
            task=task,
            task_type=task_type,
            kind=kind,
            items=items.sort_values("item_id", ignore_index=True),
            selection=selection.sort_values("rank", ignore_index=True),
            item_parameters=item_parameters.sort_values("item_id", ignore_index=True),
            estimator=str(calibration["estimator"]),
            calibration_method=str(calibration["method"]),
            calibration=Calibration(*line, n_models=int(str(calibration["n_models"]))),
            statistic=statistic,
            reference=reference,
            **number,
        )


def fit_task(
    evidence: TaskEvidence,
    variant: Variant,
    k: int,
    rng_keys: tuple[str | int, ...],
    *,
    response_model: str = "auto",
    statistic: Statistic = set_statistic,
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

    Raises:
        ValueError: no model can be used, or the estimate is undefined for every one of them.
    """
    fit = fit_items(evidence, response_model)
    selection = select(variant.selection(evidence.kind), evidence, fit, k, rng_keys)
    return calibrate_variant(
        evidence, fit, selection, variant, rng_keys,
        response_model=response_model, statistic=statistic,
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
) -> FittedTask:
    """Calibrate a selection as a variant asks for, cross-fitted where it does; see `fit_task`.

    Args:
        evidence: reference models.
        fit: their items.
        selection: the variant's selection on the fit.
        variant: whose estimator and calibration to use.
        rng_keys: those of the selection; inner fits select as many items with them.
        response_model: see `fit_items`.
        statistic: the official set statistic.
    """
    estimator = variant.estimator_for(evidence.kind)
    calibration = variant.calibration_for(
        usable_estimator(estimator, evidence.kind, usable=fit.usable)
    )
    held_out: np.ndarray | None = None
    if calibration in CROSS_FITTED or calibration in JOINT:
        calibration = CROSS_FITTED.get(calibration, starting_line(evidence.kind))
        held_out = cross_fitted_estimates(
            evidence, variant.selection(evidence.kind), estimator, len(selection), rng_keys,
            response_model=response_model, statistic=statistic,
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
