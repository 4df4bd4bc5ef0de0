"""A task fitted for scoring: its selection, item parameters, estimator and calibration.

The prediction of a new model uses only its outcomes on the selected items.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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

FORMAT = 1
"""Of the stored form."""


@dataclass(frozen=True)
class FittedTask:
    """Everything for scoring a model on a task's selection.

    Attributes:
        kind: `per_item` or `set_metric`.
        items: the pool's items: item_id, hf_subset, split, stratum, gold, pool_weight.
        selection: item_id, method, rank, weight, in rank order.
        item_parameters: of all pool items.
        estimator: name in ESTIMATORS or SET_ESTIMATORS.
        calibration_method: name in CALIBRATIONS.
        calibration: fitted on the reference models.
        theta_mean: mean full score of the reference models.
        theta_sd: population standard deviation of their full scores.
        reference_low: lowest full score of the reference models.
        reference_high: highest full score of the reference models.
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
            observed: outcomes (k,) of a per-item task (NaN = not observed) or observations (k, d)
                of a set metric, in the order of `selection`.
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
        rows, statistic = self.selected_rows, self.set_estimator
        weights = self.selection["weight"].to_numpy(dtype=float)
        return np.array(
            [estimate_set(self.task_type, o, rows, weights, statistic) for o in observed]
        )

    @property
    def set_estimator(self) -> Statistic:
        """The estimator of a set-metric task."""
        official = self.estimator == SET_STATISTIC
        return self.statistic if official else find_set_estimator(self.estimator)

    @property
    def selected_rows(self) -> pd.DataFrame:
        """The rows of `items` of the selection, in its order."""
        rows = self.items.set_index("item_id", drop=False).loc[self.selection["item_id"]]
        return rows.reset_index(drop=True)

    def calibrated(self, observed: np.ndarray) -> float:
        """Return the calibrated estimate before clipping; see `raw`."""
        return float(self.calibration.apply(np.array([self.raw(observed)]))[0])

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
        """Return a fitted task from its stored tables, in any order of rows.

        `calibration` is a `calibration_row`; the other arguments are attributes of the class.
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

    def to_json(self) -> str:
        """Return the task as JSON: items, selection, item parameters and calibration.

        Outcomes of the reference models are part of it only for estimators that need them.
        """
        reference = {} if self.reference is None else {"reference": _reference(self.reference)}
        return json.dumps(
            {
                **reference,
                "format": FORMAT,
                "task": self.task,
                "task_type": self.task_type,
                "kind": self.kind,
                "items": _columns(self.items),
                "selection": _columns(self.selection),
                "item_parameters": _columns(self.item_parameters),
                "calibration": {k: _plain(v) for k, v in self.calibration_row().items()},
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> FittedTask:
        """Return the task of `to_json`.

        Raises:
            ValueError: the format is unknown.
        """
        value: dict[str, Any] = json.loads(text)
        if value.get("format") != FORMAT:
            raise ValueError(
                f"a fitted task of format {value.get('format')!r}; this version reads {FORMAT}: "
                "materialize the lite_scores stage again"
            )
        line = value["calibration"].items()
        return cls.from_tables(
            task=value["task"],
            task_type=value["task_type"],
            kind=value["kind"],
            items=pd.DataFrame(value["items"]),
            selection=pd.DataFrame(value["selection"]),
            item_parameters=pd.DataFrame(value["item_parameters"]),
            calibration={k: float("nan") if v is None else v for k, v in line},
            reference=_read_reference(value["reference"]) if "reference" in value else None,
        )


def _reference(reference: Reference) -> dict[str, Any]:
    """Return a JSON form; outcomes are compressed little-endian doubles."""
    data = zlib.compress(np.ascontiguousarray(reference.outcomes, dtype="<f8").tobytes(), 9)
    return {
        "shape": list(reference.outcomes.shape),
        "outcomes": base64.b64encode(data).decode("ascii"),
        "full_scores": reference.full_scores.tolist(),
        "families": list(reference.families),
    }


def _read_reference(value: dict[str, Any]) -> Reference:
    data = zlib.decompress(base64.b64decode(value["outcomes"]))
    outcomes = np.frombuffer(data, dtype="<f8").reshape(value["shape"]).astype(float)
    return Reference(outcomes, np.array(value["full_scores"], float), tuple(value["families"]))


def _columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    return {str(c): [_plain(v) for v in frame[c].tolist()] for c in frame.columns}


def _plain(value: Any) -> Any:
    """Return null for NaN, which JSON does not have; reading turns it into NaN again."""
    return None if isinstance(value, float) and value != value else value
