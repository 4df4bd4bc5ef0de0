"""Official scores of public models as evidence for the joint calibrations of a suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from mteblite.calibrations.levels import JOINT
from mteblite.calibrations.variant import Variant
from mteblite.reference_scores.public_models import joint_scores
from mteblite.validation.presets import find_preset
from mteblite_assets.graph.work import SettingsContext, Work

OFFICIAL = "official"
RELATIVES = "fine-tunes and ancestors"
"""Who joins a family of the suite; in the settings, so that a change of it validates again."""


def learns_from_official(context: SettingsContext) -> bool:
    """Say whether a suite reads official scores, and has a joint calibration that they teach."""
    file = context.suite.file
    if OFFICIAL not in file.reference_scores:
        return False
    preset = find_preset(file.preset).variants if file.preset else ()
    return any(v.calibration in JOINT for v in (Variant.chosen(file), *preset))


def release_learns(context: SettingsContext) -> bool:
    """Say whether the released calibration of a suite is one that official scores teach."""
    return context.suite.file.calibration in JOINT and learns_from_official(context)


def official_settings(
    context: SettingsContext, learns: Callable[[SettingsContext], bool] = learns_from_official
) -> tuple[Any, ...]:
    """Return what decides the families of public models: the suite's, and mteb's registry.

    Empty where nothing is learned from them, so that what earlier versions made stays fresh.
    """
    if not learns(context):
        return ()
    members = [(m.name, m.family) for m in context.suite.models if m.role == "reference"]
    return RELATIVES, context.ports.tasks.mteb_version, sorted(members)


def official_scores(work: Work) -> pd.DataFrame | None:
    """Return the official scores that teach a suite's joint calibrations; None where none may.

    The suite's own models are left out: they are in the evidence already. Reference models without
    weights are not; they keep the suite's family. A fine-tune joins the family of its nearest
    ancestor in the suite, and the suite's model takes its own ancestors into its family, so that a
    fold that holds out a family holds out what is near it.

    Returns:
        One row per (model, task): model, family, task, main_score.
    """
    if not learns_from_official(work):
        return None
    sources = work.ports.full_scores.sources
    listed = [m for m in work.suite.models if m.role == "reference"]
    names = {m.name: sources.public_name(m.name) for m in listed}
    # A checkpoint's own family goes before that of its variants.
    listed.sort(key=lambda m: names[m.name] == m.name)
    families = {names[m.name]: m.family for m in listed}
    tasks = work.rows("suites.suite_tasks")[["task", "pool_task"]]
    rows = work.rows("reference_scores.public_scores").merge(tasks, on="pool_task")
    found = joint_scores(rows, sources.official.facts.model_parents, families)
    own = {names[m.name] for m in work.suite.references()}
    return found[~found["model"].isin(own)].reset_index(drop=True)
