"""A fitted task as one row: all that scoring a new model needs, without the reference models."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from mteblite_assets.calibrations.fitted_task import FittedTask

FORMAT = 1


def release_json(fitted: FittedTask) -> str:
    """Return a fitted task as JSON: items, selection, item parameters and calibration."""
    return json.dumps(
        {
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
    )


def _columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    return {str(c): [_plain(v) for v in frame[c].tolist()] for c in frame.columns}


def _plain(value: Any) -> Any:
    """JSON has no NaN: it becomes null, and NaN again when read."""
    return None if isinstance(value, float) and value != value else value
