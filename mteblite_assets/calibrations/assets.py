"""Calibrations: the line from the estimate on the selection to the full score."""

from __future__ import annotations

import pandas as pd

from mteblite_assets.calibrations.fitted_task import calibrate_task
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import Work
from mteblite_assets.item_parameters.assets import EVIDENCE, evidence_of, suite_task_of
from mteblite_assets.item_parameters.fitting import fit_from_tables


@stage_asset(
    grain=Grain.SUITE_TASK,
    deps=[*EVIDENCE, "item_parameters", "selected_items"],
    tables=["calibrations.calibrations"],
    code_version="1",
    checks=[
        Check(
            "lines_finite",
            "Slope and intercept are finite and the slope is positive.",
            "SELECT suite, task, slope, intercept FROM calibrations.calibrations "
            "WHERE NOT isfinite(slope) OR NOT isfinite(intercept) OR slope <= 0",
        )
    ],
)
def calibrations(work: Work) -> Produced:
    """One row per (suite, task): estimator, slope, intercept and residual of the calibration."""
    task = suite_task_of(work, work.key["task"])
    fit = fit_from_tables(
        work.rows("item_parameters.item_parameters"), work.rows("item_parameters.abilities")
    )
    fitted = calibrate_task(
        evidence_of(work, work.key["task"]),
        fit,
        work.rows("selections.selected_items"),
        str(task["estimator"]),
    )
    row = {k: v for k, v in fitted.calibration_row().items() if k != "task"}
    facts = {k: v if isinstance(v, str) else round(float(str(v)), 5) for k, v in row.items()}
    return Produced({"calibrations.calibrations": pd.DataFrame([row])}, facts)
