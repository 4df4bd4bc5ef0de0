"""A task ready to score new models: its selection, item parameters, estimator and calibration.

Predictions of a new model use its outcomes on the selected items and nothing else of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mteblite.calibrations.estimator import Reference, legal_range
from mteblite.calibrations.linear import Calibration
from mteblite.calibrations.registry import (
    SET_STATISTIC,
    Statistic,
    estimate_set,
    find_estimator,
    find_set_estimator,
    make_context,
)
from mteblite.task_types.scoring import set_statistic


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
