"""Where a calibration is fitted: per task in sample, per task cross-fitted, or over all tasks.

A new one is a function in `linear.py`, or a joint calibration beside `blup.py`, and one entry.
"""

from __future__ import annotations

from mteblite.calibrations.linear import CALIBRATIONS

CROSS_FITTED: dict[str, str] = {"crossfit": "linear", "crossfit_offset": "offset"}
"""Calibrations fitted on estimates of models that did not choose the items: name -> name
in CALIBRATIONS."""
JOINT = ("blup",)
"""Calibrations over all tasks of a suite, on top of `crossfit_offset`."""
ALL_CALIBRATIONS: tuple[str, ...] = (*CALIBRATIONS, *CROSS_FITTED, *JOINT)


def starting_line(kind: str) -> str:
    """Return the per-task calibration that a joint one starts from.

    Estimates of the full score or the pool's mean are right but for a shift; a set statistic of few
    items also lies on another scale.
    """
    return "offset" if kind == "per_item" else "inverse"


def check_calibration(name: str) -> None:
    """Refuse an unknown calibration.

    Raises:
        ValueError: it is in none of the lists.
    """
    if name not in ALL_CALIBRATIONS:
        allowed = ", ".join(ALL_CALIBRATIONS)
        raise ValueError(f"calibration {name!r} is unknown; allowed: {allowed}")
