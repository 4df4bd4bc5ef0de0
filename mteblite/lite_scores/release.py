"""A fitted task as one row: all that scoring a new model needs, without the reference models."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
import pandas as pd

from mteblite.calibrations.estimator import Reference
from mteblite.calibrations.fitted_task import FittedTask

FORMAT = 1


def release_json(fitted: FittedTask) -> str:
    """Return a fitted task as JSON: items, selection, item parameters and calibration.

    Estimators that look at the reference models need their outcomes, too; only then are they in it.
    """
    reference = {} if fitted.reference is None else {"reference": _reference(fitted.reference)}
    return json.dumps(
        {
            **reference,
            "format": FORMAT,
            "task": fitted.task,
            "task_type": fitted.task_type,
            "kind": fitted.kind,
            "items": _columns(fitted.items),
            "selection": _columns(fitted.selection),
            "item_parameters": _columns(fitted.item_parameters),
            "calibration": {k: _plain(v) for k, v in fitted.calibration_row().items()},
        },
        sort_keys=True,
    )


def fitted_from_json(text: str) -> FittedTask:
    """Return the fitted task that `release_json` wrote.

    Raises:
        ValueError: a format that this version does not know.
    """
    value: dict[str, Any] = json.loads(text)
    if value.get("format") != FORMAT:
        raise ValueError(
            f"a lite suite of format {value.get('format')!r}; this version reads {FORMAT}: "
            "materialize the lite_scores stage again"
        )
    return FittedTask.from_tables(
        task=value["task"],
        task_type=value["task_type"],
        kind=value["kind"],
        items=pd.DataFrame(value["items"]),
        selection=pd.DataFrame(value["selection"]),
        item_parameters=pd.DataFrame(value["item_parameters"]),
        calibration={k: float("nan") if v is None else v for k, v in value["calibration"].items()},
        reference=_read_reference(value["reference"]) if "reference" in value else None,
    )


def _reference(reference: Reference) -> dict[str, Any]:
    """Outcomes as compressed little-endian doubles; nothing but numbers can come out again."""
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
    """JSON has no NaN: it becomes null, and NaN again when read."""
    return None if isinstance(value, float) and value != value else value
