"""Lite scores under a joint calibration: all tasks of a model together, with intervals.

The joint calibration has a posterior standard deviation of each score, also where tasks are
missing. It is scaled so that a model with all tasks gets the half-widths of held-out residuals
(docs/methods.md, Intervals of a joint calibration).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import pandas as pd

from mteblite.calibrations.blup import Blup, JointPrediction
from mteblite.calibrations.estimator import legal_range
from mteblite.suites.task_types import TaskTypes
from mteblite.validation.conformal import LEVEL, HalfWidth
from mteblite.validation.targets import target_weights

GAUSSIAN = "posterior"
"""Interval method without conformal factors, i.e. without held-out families."""
FORMAT = 1
"""Of the stored form."""


@dataclass(frozen=True)
class JointCalibration:
    """A joint calibration for scoring new models.

    Attributes:
        tasks: names, in the order of the arrays.
        task_types: type of each task.
        blup: prior and noise.
        factors: by target (`macro`, `mean`, `type:<type>`, `task:<name>`) the half-width in
            posterior standard deviations, see `with_widths`.
        level: coverage of the intervals.
    """

    tasks: tuple[str, ...]
    task_types: TaskTypes
    blup: Blup
    factors: dict[str, HalfWidth]
    level: float = LEVEL

    def score(self, estimates: Mapping[str, float]) -> pd.DataFrame:
        """Return the scores of one model.

        Args:
            estimates: estimate by task (`FittedTask.calibrated` of a task fitted with `+blup`);
                tasks may be missing.

        Returns:
            One row per target: target, predicted, sd, half_width, lower, upper, interval_method,
            observed (False where a task of the target has no estimate).

        Raises:
            ValueError: a task is not in the suite, or no task has an estimate.
        """
        unknown = sorted(set(estimates) - set(self.tasks))
        if unknown:
            raise ValueError(f"task {unknown[0]!r} is not in the suite: {', '.join(self.tasks)}")
        row = np.array([estimates.get(task, np.nan) for task in self.tasks], dtype=float)
        if not np.isfinite(row).any():
            raise ValueError("none of the suite's tasks has an estimate: score at least one task")
        found = self.blup.predict(row[None])
        targets = target_weights(self.tasks, self.task_types, with_types=True)
        return pd.DataFrame([self._row(t, w, found, np.isfinite(row)) for t, w in targets.items()])

    def with_widths(self, widths: pd.DataFrame) -> JointCalibration:
        """Return the calibration with the half-widths of held-out residuals for complete models.

        A model with missing tasks has a larger posterior standard deviation and a wider interval in
        proportion.

        Args:
            widths: see `interval_half_widths`; half-widths that are NaN set no factor.
        """
        usual = self.usual_deviations()
        factors = {
            str(row["target"]): HalfWidth(
                row["half_width"] / usual[row["target"]], row["interval_method"], row["n_families"]
            )
            for row in widths.to_dict("records")
            if np.isfinite(row["half_width"])
        }
        return replace(self, factors=factors)

    def usual_deviations(self) -> dict[str, float]:
        """Return by target the posterior standard deviation of an average model with all tasks."""
        table = self.score(dict(zip(self.tasks, self.blup.prior.mean.tolist(), strict=True)))
        return {str(t): float(sd) for t, sd in zip(table["target"], table["sd"], strict=True)}

    def to_json(self) -> str:
        """Return the joint calibration as JSON."""
        value = {
            "format": FORMAT,
            "tasks": list(self.tasks),
            "task_types": self.task_types,
            "parts": self.task_types.parts,
            **self.blup.record(),
            "level": self.level,
            "factors": {
                t: [None if not np.isfinite(f.value) else f.value, f.method, f.n_families]
                for t, f in self.factors.items()
            },
        }
        return json.dumps(value, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> JointCalibration:
        """Return the joint calibration of `to_json`.

        Raises:
            ValueError: the format or the kind is unknown.
        """
        value = json.loads(text)
        if value.get("format") != FORMAT or "covariance" not in value:
            raise ValueError(
                f"a calibration over all tasks of format {value.get('format')!r} and kind "
                f"{value.get('kind', 'blup')!r}; this version reads `blup` of format {FORMAT}: "
                "materialize the lite_scores stage again"
            )
        factors = {
            t: HalfWidth(float("nan") if v is None else v, method, n)
            for t, (v, method, n) in value["factors"].items()
        }
        return cls(
            tasks=tuple(value["tasks"]),
            task_types=TaskTypes(value["task_types"], value.get("parts")),
            blup=Blup.from_record(value),
            factors=factors,
            level=float(value.get("level", LEVEL)),
        )

    def _row(
        self, target: str, weights: np.ndarray, found: JointPrediction, seen: np.ndarray
    ) -> dict[str, object]:
        """Return the score of one target with its interval."""
        mean, sd = (float(v[0]) for v in found.combined(weights))
        types = [self.task_types[t] for t, w in zip(self.tasks, weights, strict=True) if w > 0]
        low = min(legal_range(t)[0] for t in types)
        factor = self.factors.get(target, HalfWidth(float("nan"), GAUSSIAN, 0))
        gaussian = NormalDist().inv_cdf(0.5 + self.level / 2.0)
        half = (factor.value if np.isfinite(factor.value) else gaussian) * sd
        return {
            "target": target,
            "predicted": float(np.clip(mean, low, 1.0)),
            "sd": sd,
            "half_width": half,
            "lower": float(np.clip(mean - half, low, 1.0)),
            "upper": float(np.clip(mean + half, low, 1.0)),
            "interval_method": factor.method if np.isfinite(factor.value) else GAUSSIAN,
            "observed": bool(seen[weights > 0].all()),
        }
