"""Calibrations: the line from the estimate on the selection to the full score."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mteblite.calibrations.levels import CROSS_FITTED, JOINT
from mteblite.calibrations.task_fit import fits_of
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.fitting import fit_from_tables
from mteblite.task_types.registry import task_kind
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import SettingsContext, Work
from mteblite_assets.item_parameters.assets import EVIDENCE, evidence_of
from mteblite_assets.selections.assets import count_and_costs, pays_by_token


def _settings(context: SettingsContext) -> Any:
    file = context.suite.file
    description = context.entry.description
    if description is None:  # an unresolved task cannot run
        return str(Variant.chosen(file))
    kind = task_kind(description.task_type)
    return Variant.chosen(file).estimator_for(kind), file.calibration


def selects_for_tokens(context: SettingsContext) -> bool:
    """Return whether inner fits select items for tokens, so that a selection's size is not K."""
    return pays_by_token(context) and context.suite.file.calibration in {*CROSS_FITTED, *JOINT}


@stage_asset(
    grain=Grain.SUITE_TASK,
    deps=[*EVIDENCE, "item_parameters", "selected_items"],
    optional=dict.fromkeys(("allocations", "pool_costs"), selects_for_tokens),
    tables=["calibrations.calibrations"],
    code_version="3",
    settings=_settings,
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
    """One row per (suite, task): estimator, slope, intercept and residual of the calibration.

    The suite chooses the calibration: in sample, cross-fitted, or the start of a joint one.
    """
    file = work.suite.file
    fit = fit_from_tables(
        work.rows("item_parameters.item_parameters"), work.rows("item_parameters.abilities")
    )
    evidence = evidence_of(work, work.key["task"])
    selection, variant = work.rows("selections.selected_items"), Variant.chosen(file)
    fits = fits_of(evidence, len(selection), (work.key["suite"], file.pool.seed))
    fits.response_model = file.response_model
    if selects_for_tokens(work):
        fits.k, fits.costs = count_and_costs(work, evidence)
    fits.use(fit, variant.selection(evidence.kind), selection)
    fitted = fits.fitted(variant)
    row = {k: v for k, v in fitted.calibration_row().items() if k != "task"}
    facts = {k: v if isinstance(v, str) else round(float(str(v)), 5) for k, v in row.items()}
    return Produced({"calibrations.calibrations": pd.DataFrame([row])}, facts)
