"""mteb's registries of models and tasks as plain facts, kept so that mteb is imported once."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path

from mteblite.reference_scores.registry_facts import RegistryFacts


def registry_facts(cache: Path) -> RegistryFacts:
    """Return the facts of the installed mteb; imports it only where they are not kept yet.

    Args:
        cache: folder of the kept facts, one file per version of mteb.
    """
    path = cache / f"mteb-{importlib.metadata.version('mteb')}-registry.json"
    try:
        return RegistryFacts(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        facts = facts_of_mteb()
    cache.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".writing")
    scratch.write_text(json.dumps(asdict(facts)), encoding="utf-8")
    scratch.replace(path)
    return facts


def facts_of_mteb() -> RegistryFacts:
    """Return the facts of the installed mteb."""
    # The package hides modules behind functions of the same name.
    task_lookup = importlib.import_module("mteb.get_tasks")
    model_lookup = importlib.import_module("mteb.models.get_model_meta")
    result_reading = importlib.import_module("mteb.results.task_result")

    models = {str(m.name): m for m in model_lookup.get_model_metas() if m.name}
    # Names of mteb's own tables of renamings may go with another version; results then keep
    # their names.
    renamed_models = dict(getattr(model_lookup, "_MODEL_RENAMES", {}))
    renamed_tasks = {
        **getattr(result_reading, "renamed_tasks", {}),
        **getattr(task_lookup, "_TASK_RENAMES", {}),
    }
    # Classes, not instances: making all tasks takes seconds and warns of every beta task.
    tasks = task_lookup._TASKS_REGISTRY.values()
    return RegistryFacts(
        mteb_version=importlib.metadata.version("mteb"),
        model_revisions={name: meta.revision for name, meta in models.items()},
        model_parents={n: str(m.adapted_from) for n, m in models.items() if m.adapted_from},
        model_renames=renamed_models,
        task_metrics={t.metadata.name: t.metadata.main_score for t in tasks},
        task_renames=renamed_tasks,
    )
