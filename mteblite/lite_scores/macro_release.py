"""Lite scores under a calibration of the macro mean: all tasks are shifted by the same amount."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mteblite.calibrations.joint import JointData
from mteblite.calibrations.linear import fit_linear
from mteblite.suites.means import macro_weights
from mteblite.suites.task_types import TaskTypes

KIND = "macro"
FORMAT = 1


@dataclass(frozen=True)
class MacroRelease:
    """A macro calibration ready to score new models; see `calibrations.joint.macro_layer`.

    Attributes:
        tasks: names.
        task_types: type of each task.
        slope: of the line from estimated to full macro mean.
        intercept: of that line.
        offset: mean shift, for models without all tasks.
    """

    tasks: tuple[str, ...]
    task_types: dict[str, str]
    slope: float
    intercept: float
    offset: float

    def shift(self, estimates: Mapping[str, float]) -> float:
        """Return what to add to every task's estimate.

        Args:
            estimates: by task the estimate that the calibration starts from.
        """
        row = np.array([estimates.get(task, np.nan) for task in self.tasks], dtype=float)
        if not np.isfinite(row).all():
            return self.offset
        macro = float(row @ macro_weights(self.tasks, self.task_types))
        return self.slope * macro + self.intercept - macro


def fit_macro(
    tasks: tuple[str, ...], task_types: Mapping[str, str], data: JointData
) -> MacroRelease:
    """Fit the line on cross-fitted estimates; without models that have all tasks nothing shifts."""
    taught, truth = data.taught @ data.weights, data.scores @ data.weights
    known = np.isfinite(taught) & np.isfinite(truth)
    types = TaskTypes({t: task_types[t] for t in tasks}, getattr(task_types, "parts", {}))
    if not known.any():
        return MacroRelease(tasks, types, 1.0, 0.0, 0.0)
    line = fit_linear(taught, truth)
    offset = float((truth - taught)[known].mean())
    return MacroRelease(tasks, types, line.slope, line.intercept, offset)


def macro_json(release: MacroRelease) -> str:
    """Return a macro calibration as JSON."""
    value = {
        "format": FORMAT,
        "kind": KIND,
        "tasks": list(release.tasks),
        "task_types": release.task_types,
        "parts": getattr(release.task_types, "parts", {}),
        "slope": release.slope,
        "intercept": release.intercept,
        "offset": release.offset,
    }
    return json.dumps(value, sort_keys=True)


def macro_from_json(text: str) -> MacroRelease:
    """Return the macro calibration that `macro_json` wrote.

    Raises:
        ValueError: a format that this version does not know.
    """
    value = json.loads(text)
    if (value.get("format"), value.get("kind")) != (FORMAT, KIND):
        raise ValueError(
            f"a macro calibration of format {value.get('format')!r}; this version reads {FORMAT}: "
            "materialize the lite_scores stage again"
        )
    numbers = (float(value[name]) for name in ("slope", "intercept", "offset"))
    types = TaskTypes(value["task_types"], value.get("parts"))
    return MacroRelease(tuple(value["tasks"]), types, *numbers)
