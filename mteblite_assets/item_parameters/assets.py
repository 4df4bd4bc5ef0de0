"""Item parameters: the response of each item to ability, and the abilities of the kept models."""

from __future__ import annotations

from typing import Any

import pandas as pd

from mteblite.item_parameters.assembling import assemble_evidence
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import fit_items
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import SettingsContext, Work
from mteblite_assets.outcomes.assets import stored_observations

EVIDENCE = ["suite_tasks", "pool_items", "outcome_matrix", "full_score_vectors", "kept_models"]
"""Assets whose rows make up a task's evidence."""


def evidence_of(work: Work, task: str) -> TaskEvidence:
    """Assemble the evidence of one task of the work's suite from its input rows."""
    tasks = work.rows("suites.suite_tasks")
    row = {str(k): v for k, v in tasks[tasks["task"] == task].iloc[0].items()}

    def mine(table: str) -> pd.DataFrame:
        rows = work.rows(table)
        return rows[rows["pool_task"] == row["pool_task"]]

    return assemble_evidence(
        row,
        mine("pools.shared_pool_items"),
        mine("outcomes.outcome_matrix"),
        mine("reference_scores.full_score_vectors"),
        work.rows("reference_scores.kept_models"),
        lambda model, file: stored_observations(work, str(row["pool_task"]), model, file),
    )


def evidences_of(work: Work) -> tuple[list[TaskEvidence], list[str]]:
    """Assemble the evidence of every task of the work's suite; return reasons where it fails."""
    evidences, left_out = [], []
    for name in work.rows("suites.suite_tasks")["task"]:
        try:
            evidences.append(evidence_of(work, name))
        except ValueError as error:
            left_out.append(f"{name}: {error}")
    return evidences, left_out


def _settings(context: SettingsContext) -> Any:
    """Return None for the default, so that partitions of earlier versions stay fresh."""
    chosen = context.suite.file.response_model
    return None if chosen == "auto" else chosen


@stage_asset(
    grain=Grain.SUITE_TASK,
    deps=EVIDENCE,
    tables=["item_parameters.item_parameters", "item_parameters.abilities"],
    code_version="1",
    nullable=["slope", "intercept"],
    settings=_settings,
    checks=[
        Check(
            "parameters_finite",
            "Slope, intercept and residual are finite, the residual positive.",
            "SELECT suite, task, item_id, slope, intercept, residual_sd "
            "FROM item_parameters.item_parameters WHERE n_models > 0 AND (NOT isfinite(slope) "
            "OR NOT isfinite(intercept) OR residual_sd < 0)",
        ),
        Check(
            "abilities_standardised",
            "The abilities of a task have mean 0 over the models that fit it.",
            "SELECT suite, task, avg(theta) AS mean FROM item_parameters.abilities "
            "GROUP BY ALL HAVING abs(avg(theta)) > 1e-6",
        ),
    ],
)
def item_parameters(work: Work) -> Produced:
    """One row per (suite, task, item_id): response model, slope, intercept, residual.

    Ability is the full score standardised over the kept models; unless the suite chose a response
    model, binary outcomes get a 2PL, others a linear-Gaussian factor model. Negative slopes are
    kept and counted.
    """
    fit = fit_items(evidence_of(work, work.key["task"]), work.suite.file.response_model)
    parameters = fit.item_parameters
    abilities = fit.abilities
    tables = {"item_parameters.item_parameters": parameters, "item_parameters.abilities": abilities}
    facts = {
        "response_model": parameters["response_model"].iloc[0],
        "items": len(parameters),
        "models": len(abilities),
        "negative_slopes": int((parameters["slope"] < 0).sum()),
        "median_slope": round(float(parameters["slope"].median()), 4),
    }
    return Produced(tables, facts)
