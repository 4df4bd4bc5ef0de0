"""mteb's registries of models and tasks as plain facts, cached because importing mteb is slow."""

from __future__ import annotations

import importlib
import importlib.metadata
from dataclasses import asdict
from pathlib import Path

from mteblite.files import checked_json, write_json
from mteblite.reference_scores.registry_facts import RegistryFacts


def registry_facts(cache: Path) -> RegistryFacts:
    """Return the facts of the installed mteb; imports it only where the cache has none.

    The cache is a folder with one file per version of mteb.
    """
    path = cache / f"mteb-{importlib.metadata.version('mteb')}-registry.json"
    try:
        return RegistryFacts(**checked_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        facts = facts_of_mteb()
    write_json(path, asdict(facts))
    return facts


def facts_of_mteb() -> RegistryFacts:
    """Return the facts of the installed mteb."""
    # mteb exports functions with the names of these modules.
    task_lookup = importlib.import_module("mteb.get_tasks")
    model_lookup = importlib.import_module("mteb.models.get_model_meta")
    result_reading = importlib.import_module("mteb.results.task_result")

    models = {str(m.name): m for m in model_lookup.get_model_metas() if m.name}
    # Other versions of mteb may lack these private tables; names then stay as they are.
    renamed_tasks = {
        **getattr(result_reading, "renamed_tasks", {}),
        **getattr(task_lookup, "_TASK_RENAMES", {}),
    }
    # Classes, because making instances of all tasks takes seconds and prints warnings.
    tasks = task_lookup._TASKS_REGISTRY.values()
    return RegistryFacts(
        mteb_version=importlib.metadata.version("mteb"),
        model_revisions={name: meta.revision for name, meta in models.items()},
        model_parents={n: str(m.adapted_from) for n, m in models.items() if m.adapted_from},
        model_renames=dict(getattr(model_lookup, "_MODEL_RENAMES", {})),
        task_metrics={t.metadata.name: t.metadata.main_score for t in tasks},
        task_renames=renamed_tasks,
    )
