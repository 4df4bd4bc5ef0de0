"""The tasks of suites: resolved against mteb and frozen, described, and loaded with their data."""

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
    """What the tasks of one home's suites are, and their data."""

    def __init__(self, home: Home, source: MtebTasks) -> None:
        """Set up; nothing is loaded yet.

        Args:
            home: where what tasks resolved to is frozen.
            source: mteb's tasks, the sample tasks and users' own data.
        """
        self.source = source
        self._home = home
        self._loaded: LRUCache[TaskDescription, Any] = LRUCache(TASKS_KEPT)

    @property
    def mteb_version(self) -> str:
        """Installed version of mteb."""
        return self.source.mteb_version()

    def resolve(self, suite: Suite, *, refresh: bool = False) -> Suite:
        """Return the suite with every task resolved; asks mteb once and freezes the answer.

        Args:
            suite: the suite.
            refresh: ask the installed mteb about every task again and take its answer.

        Raises:
            ValueError: a task, subset, split or benchmark that there is not; names file and key.
        """
        if suite.resolved and not refresh:
            return suite
        known = Resolution() if refresh else recall_resolution(self._home, suite.file)
        found = resolve_tasks(suite.file, suite.origin, self.source, known)
        remember_resolution(self._home, suite.file, found, whole=refresh)
        return load_catalog(self._home).suite(suite.name)

    def mteb_differences(self, suite: Suite) -> list[TaskDifference]:
        """Return how the installed mteb's tasks differ from those that were frozen.

        Asks mteb only where another version of it was asked when they were frozen.
        """
        known = recall_resolution(self._home, suite.file)
        if all(t.mteb_version == self.mteb_version for t in known.tasks.values()):
            return []
        now = resolve_tasks(suite.file, suite.origin, self.source, Resolution(), tolerant=True)
        only = suite.file.only
        return [d for d in differences(known, now) if only is None or d.task in only]

    def describe(self, entry: TaskEntry) -> TaskDescription:
        """Return what a suite task resolved to.

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
        """Return mteb's task object with its data, kept for the next model.

        Its random generators are as after loading: a run of mteb moves them on, and the next
        model would meet other samples (clustering draws its documents and bootstraps from them).
        """
        if description not in self._loaded:
            task = self.source.loaded_task(description)
            self._loaded[description] = task, copy.deepcopy((task.rng_state, task.np_rng))
        task, generators = self._loaded[description]
        task.rng_state, task.np_rng = copy.deepcopy(generators)
        return task
