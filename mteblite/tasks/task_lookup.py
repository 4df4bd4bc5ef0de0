"""Tasks by name: in the sample suite, in mteb's registry and in mteb's benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mteblite.names import did_you_mean
from mteblite.sample.tasks.registry import SAMPLE_TASKS, sample_task
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.registry import type_names

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask


def fresh_task(name: str) -> AbsTask:
    """Return a new task object of this name: a sample task, else mteb's.

    Raises:
        ValueError: no such task, or the name is that of an aggregate.
    """
    sample = sample_task(name)
    if sample is not None:
        return sample
    import mteb

    known = _mteb_names()
    if name not in known:
        raise ValueError(
            f"no task {name!r} in the sample suite or in mteb {mteb.__version__}; "
            f"{did_you_mean(name, [*SAMPLE_TASKS, *known])}"
            "set type and path for your own data"
        )
    task = mteb.get_task(name)
    if task.is_aggregate:
        members = ", ".join(member.metadata.name for member in task.tasks)
        raise ValueError(
            f"{name} is an aggregate without own data: list its tasks instead: {members}"
        )
    return task


def benchmark_members(name: str) -> list[AbsTask]:
    """Return a benchmark's task instances in its order, aggregates replaced by their members.

    A task that occurs twice, with different splits or subsets, is one task with the union.

    Raises:
        ValueError: no such benchmark.
    """
    import mteb

    try:
        tasks = mteb.get_benchmark(name).tasks
    except KeyError:
        known = [benchmark.name for benchmark in mteb.get_benchmarks()]
        raise ValueError(
            f"mteb {mteb.__version__} has no benchmark {name!r}; {did_you_mean(name, known)}"
            "`mteb.get_benchmarks()` lists all"
        ) from None
    merged: dict[str, AbsTask] = {}
    for task in _flattened(tasks):
        earlier = merged.get(task.metadata.name)
        merged[task.metadata.name] = task if earlier is None else _union(earlier, task)
    return list(merged.values())


def benchmark_parts(name: str) -> dict[str, str]:
    """Return the aggregate of each task that belongs to one of a benchmark's aggregates.

    mteb counts an aggregate (CQADupstackRetrieval) as one task whose score is the mean over its
    members (`abstasks/aggregated_task.py`).
    """
    import mteb

    return {
        member.metadata.name: task.metadata.name
        for task in mteb.get_benchmark(name).tasks
        if task.is_aggregate
        for member in _flattened([task])
    }


def why_left_out(task: AbsTask) -> str:
    """Return why a benchmark's task cannot be reduced here, or "" if it can."""
    kind, modalities = task.metadata.type, list(task.metadata.modalities)
    if kind not in type_names():
        return f"task type {kind} is not supported; supported are {', '.join(type_names())}"
    if modalities != ["text"]:
        return f"it has modalities {', '.join(modalities)}; only text is supported"
    if not task.metadata.is_public:
        return "its data set is private: only mteb's maintainers can run it"
    return ""


def description_of(task: AbsTask, *, source: str) -> TaskDescription:
    """Return the description of a task instance, with its own splits and subsets."""
    name, metadata = task.metadata.name, task.metadata
    return TaskDescription(
        task=name,
        task_type=metadata.type,
        main_metric=metadata.main_score,
        splits=choose(name, "split", task.eval_splits, metadata.eval_splits, ()),
        hf_subsets=choose(name, "subset", task.hf_subsets, metadata.hf_subsets, ()),
        dataset_revision=revision_of(task),
        source=source,
    )


def choose(
    task: str, what: str, wanted: Sequence[str] | None, known: Sequence[str], default: Sequence[str]
) -> tuple[str, ...]:
    """Return the wanted splits or subsets in mteb's order; the default where none are wanted.

    Raises:
        ValueError: one of them is unknown, or the list is empty.
    """
    if wanted is None:
        return tuple(default)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        problem = f"has no {what} {unknown[0]!r}" if unknown else f"needs at least one {what}"
        raise ValueError(f"{task} {problem}; its {what}s: {', '.join(known)}")
    return tuple(name for name in known if name in wanted)


def restricted(task: AbsTask, splits: Iterable[str], hf_subsets: Iterable[str]) -> AbsTask:
    """Restrict a task object to splits and subsets, and return it."""
    return task.filter_eval_splits(list(splits)).filter_languages(None, hf_subsets=list(hf_subsets))


def revision_of(task: AbsTask) -> str:
    """Return the revision of the data set that the task pins."""
    return str(task.metadata.dataset.get("revision") or "")


def source_of(name: str) -> str:
    """Return `sample` for the name of a sample task, else `mteb`."""
    return "sample" if name in SAMPLE_TASKS else "mteb"


def require_free_name(name: str) -> None:
    """Refuse a known task's name for the user's own data, so that results are not mixed up.

    Raises:
        ValueError: a known task has the name.
    """
    if name in SAMPLE_TASKS or name in _mteb_names():
        raise ValueError(
            f"{name}: a task with `path` is your own data, but this name belongs to "
            f"a task of {source_of(name)}: give your task another name"
        )


def _mteb_names() -> list[str]:
    from mteb.get_tasks import _TASKS_REGISTRY  # mteb has no public list of all names

    return list(_TASKS_REGISTRY)


def _flattened(tasks: Iterable[AbsTask]) -> list[AbsTask]:
    flat: list[AbsTask] = []
    for task in tasks:
        flat.extend(_flattened(task.tasks) if task.is_aggregate else [task])
    return flat


def _union(first: AbsTask, second: AbsTask) -> AbsTask:
    """A new task object with both restrictions; the instances of a benchmark stay unchanged."""
    splits = [
        s for s in first.metadata.eval_splits if s in {*first.eval_splits, *second.eval_splits}
    ]
    subsets = [s for s in first.metadata.hf_subsets if s in {*first.hf_subsets, *second.hf_subsets}]
    return restricted(type(first)(), splits, subsets)
