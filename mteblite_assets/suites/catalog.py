"""All suites with their tasks and models: what partitions exist and what each is made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from mteblite_assets.pools.pool import PoolSettings
from mteblite_assets.pools.task_data import TaskDescription, task_kind
from mteblite_assets.suites.suite_file import SuiteFile, SuiteFileError, SuiteModel, SuiteTask


@dataclass(frozen=True)
class TaskEntry:
    """One task of one suite.

    Attributes:
        suite: suite name.
        task: task name.
        request: what the suite file says of the task.
        benchmark: the benchmark that the task was taken from, if any.
        pool_task: partition key of its pool; suites that draw the same pool share it.
        k: items to select.
        description: what the task resolved to; None until it was resolved.
    """

    suite: str
    task: str
    request: SuiteTask
    benchmark: str | None
    pool_task: str
    k: int
    description: TaskDescription | None = None

    @property
    def suite_task(self) -> str:
        """Partition key from the item parameters on."""
        return f"{self.suite}/{self.task}"


@dataclass(frozen=True)
class Suite:
    """One suite: its file, its tasks, and its models as registered now."""

    file: SuiteFile
    origin: str
    tasks: tuple[TaskEntry, ...]
    models: tuple[SuiteModel, ...]

    @property
    def name(self) -> str:
        """The suite's name."""
        return self.file.name

    @property
    def pool_settings(self) -> PoolSettings:
        """Caps of the suite's pools."""
        return PoolSettings(**self.file.pool.model_dump())

    def references(self) -> list[SuiteModel]:
        """Models that the fits use, sorted by name."""
        return sorted((m for m in self.models if m.role == "reference"), key=lambda m: m.name)

    def candidates(self) -> list[SuiteModel]:
        """Models that only get lite scores, sorted by name."""
        return sorted((m for m in self.models if m.role == "candidate"), key=lambda m: m.name)

    def model(self, name: str) -> SuiteModel:
        """Return a registered model.

        Raises:
            ValueError: the suite has no such model.
        """
        for model in self.models:
            if model.name == name:
                return model
        raise ValueError(
            f"suite {self.name!r} has no model {name!r}; it has "
            f"{', '.join(sorted(m.name for m in self.models)) or 'none'}"
        )

    def task(self, name: str) -> TaskEntry:
        """Return a task of the suite.

        Raises:
            ValueError: the suite has no such task.
        """
        for entry in self.tasks:
            if entry.task == name:
                return entry
        raise ValueError(
            f"suite {self.name!r} has no task {name!r}; it has "
            f"{', '.join(e.task for e in self.tasks)}"
        )


@dataclass(frozen=True)
class Catalog:
    """Every suite that can be read, and why the others cannot."""

    suites: Mapping[str, Suite]
    problems: Mapping[str, str]

    def suite(self, name: str) -> Suite:
        """Return a suite by name.

        Raises:
            SuiteFileError: there is none, or its file is broken.
        """
        if name in self.suites:
            return self.suites[name]
        for file, problem in self.problems.items():
            if file.rsplit(".", 1)[0] == name:
                raise SuiteFileError(problem)
        broken = "".join(f"; {problem}" for problem in self.problems.values())
        raise SuiteFileError(
            f"no suite {name!r}; there are {', '.join(sorted(self.suites)) or 'none'}{broken}"
        )

    def entries(self) -> Iterable[TaskEntry]:
        """All tasks of all suites."""
        for suite in self.suites.values():
            yield from suite.tasks

    def entries_of_pool(self, pool_task: str) -> list[TaskEntry]:
        """The suite tasks that draw this pool, by suite name."""
        return self._pools.get(pool_task, [])

    def pool_models(self, pool_task: str) -> dict[str, SuiteModel]:
        """Reference models of all suites that use a pool, by name."""
        return self._pool_models.get(pool_task, {})

    @cached_property
    def _pools(self) -> dict[str, list[TaskEntry]]:
        pools: dict[str, list[TaskEntry]] = {}
        for entry in sorted(self.entries(), key=lambda e: e.suite):
            pools.setdefault(entry.pool_task, []).append(entry)
        return pools

    @cached_property
    def _pool_models(self) -> dict[str, dict[str, SuiteModel]]:
        references = {name: suite.references() for name, suite in self.suites.items()}
        found: dict[str, dict[str, SuiteModel]] = {}
        for pool_task, entries in self._pools.items():
            models: dict[str, SuiteModel] = {}
            for entry in entries:
                for model in references[entry.suite]:
                    models.setdefault(model.name, model)
            found[pool_task] = dict(sorted(models.items()))
        return found


def make_suite(
    file: SuiteFile,
    origin: str,
    models: Iterable[SuiteModel],
    descriptions: Mapping[str, TaskDescription] | None,
) -> Suite:
    """Put a suite together.

    Args:
        file: the parsed suite file.
        origin: where it came from, for messages.
        models: its models as registered now.
        descriptions: resolved tasks by name; None when not resolved yet, in which case a
            benchmark's own tasks are not known and only the listed ones appear.
    """
    entries = []
    listed = {t.task: t for t in file.tasks}
    from_benchmark = [t for t in (descriptions or {}) if t not in listed]
    for task in [*listed, *from_benchmark]:
        request = listed.get(task, SuiteTask(task=task))
        benchmark = None if task in listed else file.benchmark
        entries.append(
            TaskEntry(
                suite=file.name,
                task=task,
                request=request,
                benchmark=benchmark,
                pool_task=f"{task}/{_pool_digest(file, request, benchmark)}",
                k=request.k or file.k,
                description=(descriptions or {}).get(task),
            )
        )
    return Suite(file=file, origin=origin, tasks=tuple(entries), models=tuple(models))


def suite_task_row(suite: Suite, entry: TaskEntry, mteb_version: str) -> dict[str, Any]:
    """Return the row of `suites.suite_tasks` for a resolved task."""
    description = entry.description
    if description is None:
        raise ValueError(f"{entry.suite_task} is not resolved yet")
    kind = task_kind(description.task_type)
    per_item = kind == "per_item"
    return {
        "task": entry.task,
        "task_type": description.task_type,
        "main_metric": description.main_metric,
        "split": ",".join(description.splits),
        "hf_subsets": list(description.hf_subsets),
        "k": entry.k,
        "estimator": suite.file.per_item.estimator if per_item else "set_statistic",
        "kind": kind,
        "selection": (suite.file.per_item if per_item else suite.file.set_metric).selection,
        "pool_task": entry.pool_task,
        "dataset_revision": description.dataset_revision,
        "mteb_version": mteb_version,
        "max_tokens": suite.file.max_tokens,
    }


def request_digest(file: SuiteFile) -> str:
    """Return a hash of what a suite asks mteb for: its benchmark and its task requests."""
    asked = {
        "benchmark": file.benchmark,
        "tasks": [t.model_dump(exclude={"k"}) for t in file.tasks],
    }
    return _digest(asked, 16)


def _pool_digest(file: SuiteFile, request: SuiteTask, benchmark: str | None) -> str:
    """Hash everything that a pool depends on, so that equal pools share a partition."""
    drawn_from = {
        "pool": file.pool.model_dump(),
        "max_tokens": file.max_tokens,
        "benchmark": benchmark,
        "request": request.model_dump(exclude={"k"}),
    }
    return _digest(drawn_from, 6)


def _digest(value: Any, length: int) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:length]


def description_to_json(description: TaskDescription) -> dict[str, Any]:
    """Return a JSON-able form of a description."""
    return asdict(description)


def description_from_json(value: Mapping[str, Any]) -> TaskDescription:
    """Return the description that `description_to_json` wrote."""
    tuples = {"splits", "hf_subsets", "metrics"}
    fields: dict[str, Any] = {k: tuple(v) if k in tuples else v for k, v in value.items()}
    return TaskDescription(**fields)
