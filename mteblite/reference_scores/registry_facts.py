"""Facts of mteb's registries about models and tasks, as plain data for reading results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class RegistryFacts:
    """Facts of one mteb version.

    Attributes:
        model_revisions: registered models with the revision that mteb pins (None: none).
        model_parents: registered models with the model they were trained from, where known.
        model_renames: former model names with the present ones.
        task_metrics: tasks with the name of their main metric.
        task_renames: former task names with the present ones.
    """

    mteb_version: str = ""
    model_revisions: Mapping[str, str | None] = field(default_factory=dict)
    model_parents: Mapping[str, str] = field(default_factory=dict)
    model_renames: Mapping[str, str] = field(default_factory=dict)
    task_metrics: Mapping[str, str] = field(default_factory=dict)
    task_renames: Mapping[str, str] = field(default_factory=dict)

    def model_name(self, name: str) -> str:
        """Return the present name of a model; a name that mteb does not know is unchanged."""
        return self.model_renames.get(name, name)

    def task_name(self, name: str) -> str:
        """Return the present name of a task, in mteb's case; an unknown name is unchanged."""
        if name in self.task_metrics:
            return name
        renamed = self.task_renames.get(name, name)
        return self._by_lower_case.get(renamed.lower(), renamed)

    @cached_property
    def _by_lower_case(self) -> dict[str, str]:
        return {name.lower(): name for name in self.task_metrics}
