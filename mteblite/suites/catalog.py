"""All suites with their tasks and models: what partitions exist and what each is made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mteblite.names import did_you_mean
from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.resolution import FrozenTask, LeftOut, Resolution
from mteblite.suites.suite_file import SuiteFile, SuiteFileError, SuiteTask
from mteblite.suites.suite_model import SuiteModel
from mteblite.suites.task_description import TaskDescription


@dataclass(frozen=True)
class TaskEntry:
    """One task of one suite.

    Attributes:
        request: the task's entry in the suite file.
        benchmark: the benchmark that the task comes from, if any.
        pool_task: partition key of its pool; suites that draw the same pool share it.
        k: items to select.
        description: the resolved task; None before it is resolved.
        frozen_with: version of the mteb that resolved it.
        part_of: aggregate whose score is the mean over this task and its other parts, else "".
    """

    suite: str
    task: str
    request: SuiteTask
    benchmark: str | None
    pool_task: str
    k: int
    description: TaskDescription | None = None
    frozen_with: str = ""
    part_of: str = ""

    @property
    def suite_task(self) -> str:
        """Partition key of the stages from `item_parameters` on."""
        return f"{self.suite}/{self.task}"


@dataclass(frozen=True)
class Suite:
    """One suite: its file, its tasks, and its models as registered now.

    Attributes:
        origin: where the file comes from, for messages.
        tasks: the tasks that are known.
        models: every model, also those without weights.
        left_out: tasks that the file names and that cannot take part, with the reason.
        resolved: whether every task is known and described.
    """

    file: SuiteFile
    origin: str
    tasks: tuple[TaskEntry, ...]
    models: tuple[SuiteModel, ...]
    left_out: tuple[LeftOut, ...] = ()
    resolved: bool = False

    @property
    def name(self) -> str:
        """Name of the suite file."""
        return self.file.name

    def pool_settings(self, entry: TaskEntry) -> PoolSettings:
        """Return the caps of a task's pool: the suite's, with the task's own `max_items`."""
        caps = self.file.pool.model_dump()
        if entry.request.max_items is not None:
            caps["max_items"] = entry.request.max_items
        return PoolSettings(**caps)

    def references(self) -> list[SuiteModel]:
        """Return the models that the fits use, sorted by name."""
        return self._with_weights("reference")

    def candidates(self) -> list[SuiteModel]:
        """Return the models that only get lite scores, sorted by name."""
        return self._with_weights("candidate")

    def absent(self) -> list[SuiteModel]:
        """Return the models without weights in this home, sorted by name."""
        return sorted((m for m in self.models if not m.has_weights), key=lambda m: m.name)

    def _with_weights(self, role: str) -> list[SuiteModel]:
        found = (m for m in self.models if m.role == role and m.has_weights)
        return sorted(found, key=lambda m: m.name)

    def model(self, name: str) -> SuiteModel:
        """Return a registered model.

        Raises:
            ValueError: the suite has no such model.
        """
        for model in self.models:
            if model.name == name:
                return model
        raise ValueError(
            f"suite {self.name!r} has no model {name!r}; "
            f"{did_you_mean(name, [m.name for m in self.models])}it has "
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
            f"suite {self.name!r} has no task {name!r}; "
            f"{did_you_mean(name, [e.task for e in self.tasks])}it has "
            f"{', '.join(e.task for e in self.tasks)}"
        )


@dataclass(frozen=True)
class Catalog:
    """Every suite that can be read, and by file the problem of each other one."""

    suites: Mapping[str, Suite]
    problems: Mapping[str, str]

    def suite(self, name: str) -> Suite:
        """Return a suite by name.

        Raises:
            SuiteFileError: no suite has the name, or its file has an error.
        """
        if name in self.suites:
            return self.suites[name]
        for file, problem in self.problems.items():
            if file.rsplit(".", 1)[0] == name:
                raise SuiteFileError(problem)
        broken = "".join(f"; {problem}" for problem in self.problems.values())
        raise SuiteFileError(
            f"no suite {name!r}; {did_you_mean(name, self.suites)}there are "
            f"{', '.join(sorted(self.suites)) or 'none'}{broken}"
        )

    def entries(self) -> Iterable[TaskEntry]:
        """Yield all tasks of all suites."""
        for suite in self.suites.values():
            yield from suite.tasks

    def entries_of_pool(self, pool_task: str) -> list[TaskEntry]:
        """Return the suite tasks that draw this pool, in order of suite name."""
        return self._pools.get(pool_task, [])

    def pool_models(self, pool_task: str) -> dict[str, SuiteModel]:
        """Return the reference models of all suites that use a pool, by name."""
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
    file: SuiteFile, origin: str, models: Iterable[SuiteModel], known: Resolution
) -> Suite:
    """Return the suite of a file with its registered models and its resolved tasks (`known`).

    Before the benchmark is resolved, the suite has only the tasks that the file lists.

    Raises:
        SuiteFileError: `only` names a task that is not in the benchmark.
    """
    listed = {t.task: t for t in file.tasks}
    from_benchmark = [name for name in known.tasks if name not in listed]
    if file.only is not None:
        known_names = [*listed, *from_benchmark]
        unknown = [n for n in file.only if n not in known_names]
        if unknown and (known.benchmark or file.benchmark is None):
            raise SuiteFileError(
                f"{origin}: `only`: no task {unknown[0]!r}; there are {', '.join(known_names)}"
            )
        from_benchmark = [n for n in from_benchmark if n in file.only]
    unusable = {x.task for x in known.left_out}
    entries = [
        _entry(file, listed.get(name), name, known.tasks.get(name))
        for name in [*listed, *from_benchmark]
        if name not in unusable
    ]
    whole = file.benchmark is None or known.benchmark == file.benchmark
    return Suite(
        file=file,
        origin=origin,
        tasks=tuple(entries),
        models=tuple(models),
        left_out=tuple(x for x in known.left_out if file.only is None or x.task in file.only),
        resolved=whole and all(e.description is not None for e in entries),
    )


def _entry(
    file: SuiteFile, listed: SuiteTask | None, name: str, frozen: FrozenTask | None
) -> TaskEntry:
    request = listed or SuiteTask(task=name, metrics=file.metrics)
    benchmark = None if listed else file.benchmark
    description = frozen.description if frozen else None
    if description is not None and listed is None and file.metrics:
        description = replace(description, metrics=tuple(file.metrics))
    return TaskEntry(
        suite=file.name,
        task=name,
        request=request,
        benchmark=benchmark,
        pool_task=f"{name}/{_pool_digest(file, request, benchmark, description)}",
        k=request.k or file.k,
        description=description,
        frozen_with=frozen.mteb_version if frozen else "",
        part_of=frozen.part_of if frozen else "",
    )


def _pool_digest(
    file: SuiteFile,
    request: SuiteTask,
    benchmark: str | None,
    description: TaskDescription | None,
) -> str:
    """Hash everything that a pool and its full scores depend on: equal ones share a partition.

    Own data count by their content, so that a home that was moved keeps its partitions; before
    they are resolved, by their place.

    The sources of full scores are part of it. A suite that runs mteb itself and a suite that takes
    official scores must not share scores.
    """
    asked = request.model_dump(exclude={"k"})
    if request.path is not None and description is not None:
        asked["path"] = description.dataset_revision
    if request.max_items is None:  # then the suite's cap holds, which is in `pool`
        del asked["max_items"]
    drawn_from: dict[str, Any] = {
        "pool": file.pool.model_dump(),
        "max_tokens": file.max_tokens,
        "benchmark": benchmark,
        "request": asked,
    }
    if request.path is None:  # full scores of own data are always own runs
        drawn_from["reference_scores"] = list(file.reference_scores)
    return hashlib.sha256(json.dumps(drawn_from, sort_keys=True).encode()).hexdigest()[:6]
