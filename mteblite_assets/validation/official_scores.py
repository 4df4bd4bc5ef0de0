"""Official scores of public models as evidence for the joint calibrations of a suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from mteblite.calibrations.levels import JOINT
from mteblite.calibrations.variant import Variant
from mteblite.reference_scores.public_models import joint_scores
from mteblite.sample.models.catalog import PUBLIC_PARENTS
from mteblite.validation.presets import find_preset
from mteblite_assets.graph.work import SettingsContext, Work

OFFICIAL = "official"
RELATIVES = "fine-tunes, ancestors, checkpoints that are packaged"
"""Public models that join a family of the suite; a setting, so that a change validates again."""


def uses_official(context: SettingsContext) -> bool:
    """Return whether a suite has official scores and a joint calibration fitted on them."""
    file = context.suite.file
    if OFFICIAL not in file.reference_scores:
        return False
    preset = find_preset(file.preset).variants if file.preset else ()
    return any(v.calibration in JOINT for v in (Variant.chosen(file), *preset))


def lite_suite_uses_official(context: SettingsContext) -> bool:
    """Return whether the calibration of the lite suite is fitted on official scores."""
    return context.suite.file.calibration in JOINT and uses_official(context)


def official_settings(
    context: SettingsContext, uses: Callable[[SettingsContext], bool] = uses_official
) -> tuple[Any, ...]:
    """Return the settings that decide the families of public models.

    They are empty where official scores are not used, so that older partitions stay fresh.
    """
    if not uses(context):
        return ()
    members = [(m.name, m.family) for m in context.suite.models if m.role == "reference"]
    return RELATIVES, context.ports.tasks.mteb_version, sorted(members)


def official_scores(work: Work) -> pd.DataFrame | None:
    """Return the official scores for a suite's joint calibrations; None where they are not used.

    The suite's models with weights are left out, because they are in the evidence. Reference
    models without weights keep the suite's family. A fine-tune joins the family of its nearest
    ancestor in the suite. The ancestors of a suite's model join its family, and so does the public
    checkpoint that a packaged model was made of. Thus a fold that holds out a family also holds out
    its relatives.

    Returns:
        One row per (model, task): model, family, task, main_score.
    """
    if not uses_official(work):
        return None
    sources = work.ports.full_scores.sources
    listed = [m for m in work.suite.models if m.role == "reference"]
    names = {m.name: sources.public_name(m.name) for m in listed}
    # The family of a checkpoint takes precedence over the families of its variants.
    listed.sort(key=lambda m: names[m.name] == m.name)
    families = {names[m.name]: m.family for m in listed}
    tasks = work.rows("suites.suite_tasks")[["task", "pool_task"]]
    rows = work.rows("reference_scores.public_scores").merge(tasks, on="pool_task")
    parents = {**sources.official.facts.model_parents, **PUBLIC_PARENTS}
    found = joint_scores(rows, parents, families)
    own = {names[m.name] for m in work.suite.references()}
    return found[~found["model"].isin(own)].reset_index(drop=True)
