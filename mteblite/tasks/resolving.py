"""Descriptions, from mteb, of the tasks of a suite file."""

from __future__ import annotations

from pathlib import Path

from mteblite.suites.resolution import FrozenTask, Resolution, task_digest
from mteblite.suites.suite_file import SuiteFile, SuiteTask
from mteblite.tasks.mteb_tasks import MtebTasks


def resolve_tasks(
    file: SuiteFile, origin: str, tasks: MtebTasks, known: Resolution, *, tolerant: bool = False
) -> Resolution:
    """Return all tasks of a suite; mteb describes only those that are not known yet.

    Args:
        file: the suite's file, own data by absolute paths.
        origin: the file's name, for messages.
        tasks: the source of tasks.
        known: frozen tasks that still apply.
        tolerant: leave out unknown tasks and benchmarks instead of refusing them.

    Raises:
        ValueError: a task, subset, split or benchmark does not exist; names file and key.
    """
    benchmark = known
    if file.benchmark is not None and known.benchmark != file.benchmark:
        try:
            benchmark = tasks.benchmark(file.benchmark)
        except ValueError as error:
            if not tolerant:
                raise ValueError(f"{origin}: benchmark: {error}") from error
            benchmark = Resolution()
    found = {n: t for n, t in benchmark.tasks.items() if not t.request}
    for number, request in enumerate(file.tasks):
        try:
            found[request.task] = known.tasks.get(request.task) or _ask(request, tasks)
        except (ValueError, OSError) as error:
            if not tolerant:
                raise ValueError(f"{origin}: tasks.{number}: {error}") from error
    return Resolution(found, benchmark.benchmark, benchmark.left_out, known.data)


def _ask(request: SuiteTask, tasks: MtebTasks) -> FrozenTask:
    described = tasks.describe(
        request.task,
        request.splits,
        request.hf_subsets,
        path=Path(request.path) if request.path else None,
        task_type=request.type,
        metrics=request.metrics,
    )
    return FrozenTask(described, task_digest(request), tasks.mteb_version())
