"""The tasks of suites: resolved against mteb, frozen, described, and loaded with their data."""

from __future__ import annotations

import copy
from typing import Any

from cachetools import LRUCache

from mteblite.suites.catalog import Suite, TaskEntry
from mteblite.suites.resolution import Resolution, TaskDifference, differences
from mteblite.suites.task_description import TaskDescription
from mteblite.tasks.mteb_tasks import MtebTasks
from mteblite.tasks.resolving import resolve_tasks
from mteblite_resources.catalog_files import load_catalog
from mteblite_resources.frozen_tasks import recall_resolution, remember_resolution
from mteblite_resources.home import Home

TASKS_KEPT = 12


class SuiteTasks:
    """Descriptions and data of the tasks of one home's suites; data are loaded on first use."""

    def __init__(self, home: Home, source: MtebTasks) -> None:
        self.source = source
        self._home = home
        self._loaded: LRUCache[TaskDescription, Any] = LRUCache(TASKS_KEPT)

    @property
    def mteb_version(self) -> str:
        """Installed version of mteb."""
        return self.source.mteb_version()

    def resolve(self, suite: Suite, *, refresh: bool = False) -> Suite:
        """Return the suite with all tasks resolved against mteb and frozen; `refresh` resolves all.

        Raises:
            ValueError: a task, subset, split or benchmark does not exist; names file and key.
        """
        if suite.resolved and not refresh:
            return suite
        known = Resolution() if refresh else recall_resolution(self._home, suite.file)
        found = resolve_tasks(suite.file, suite.origin, self.source, known)
        remember_resolution(self._home, suite.file, found, whole=refresh)
        return load_catalog(self._home).suite(suite.name)

    def mteb_differences(self, suite: Suite) -> list[TaskDifference]:
        """Return the differences of the installed mteb's tasks from the frozen ones.

        Tasks that are frozen with the installed version are not resolved again.
        """
        known = recall_resolution(self._home, suite.file)
        if all(t.mteb_version == self.mteb_version for t in known.tasks.values()):
            return []
        now = resolve_tasks(suite.file, suite.origin, self.source, Resolution(), tolerant=True)
        only = suite.file.only
        return [d for d in differences(known, now) if only is None or d.task in only]

    def describe(self, entry: TaskEntry) -> TaskDescription:
        """Return the resolved description of a suite task.

        Raises:
            ValueError: it cannot be resolved.
        """
        if entry.description is not None:
            return entry.description
        suite = load_catalog(self._home).suite(entry.suite)
        description = self.resolve(suite).task(entry.task).description
        if description is None:
            raise ValueError(f"{entry.suite_task} could not be resolved")
        return description

    def loaded_task(self, description: TaskDescription) -> Any:
        """Return mteb's task object with its data, cached for the next model.

        Its random generators are in the state after loading. A run of mteb changes that state, and
        clustering would draw other documents and bootstraps for the next model.
        """
        if description not in self._loaded:
            task = self.source.loaded_task(description)
            self._loaded[description] = task, copy.deepcopy((task.rng_state, task.np_rng))
        task, generators = self._loaded[description]
        task.rng_state, task.np_rng = copy.deepcopy(generators)
        return task
