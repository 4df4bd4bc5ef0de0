"""Names of all calibrations: per task in sample, per task cross-fitted, and over all tasks.

A new one is a function in `linear.py`, or a joint calibration beside `blup.py`, and one entry.
"""

from __future__ import annotations

from mteblite.calibrations.linear import CALIBRATIONS

CROSS_FITTED: dict[str, str] = {"crossfit": "linear", "crossfit_offset": "offset"}
"""Calibrations fitted on cross-fitted estimates: name -> name in CALIBRATIONS."""
JOINT = ("blup",)
"""Calibrations over all tasks of a suite, applied after `starting_line`."""
ALL_CALIBRATIONS: tuple[str, ...] = (*CALIBRATIONS, *CROSS_FITTED, *JOINT)


def starting_line(kind: str) -> str:
    """Return the per-task calibration before a joint one.

    A per-item estimate of the full score or the pool mean needs only a shift. A set statistic of
    few items also has another scale.
    """
    return "offset" if kind == "per_item" else "inverse"
