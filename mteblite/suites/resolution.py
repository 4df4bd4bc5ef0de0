"""The resolved tasks of a suite, frozen with mteb's version, and differences of another mteb.

A frozen resolution is a JSON file. Packaged suites ship one, and a home keeps one per suite. It
stores the request of each task, so that a changed line of a suite file resolves only that task
again. A new version of mteb changes nothing until the user accepts the differences.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter

from mteblite.suites.suite_file import SuiteTask
from mteblite.suites.task_description import TaskDescription

FORMAT = 2
COMPARED = ("task_type", "main_metric", "splits", "hf_subsets", "dataset_revision")


@dataclass(frozen=True)
class LeftOut:
    """A task that the suite file names and that cannot take part, with the reason."""

    task: str
    task_type: str
    reason: str


_DESCRIPTION = TypeAdapter(TaskDescription)
_LEFT_OUT = TypeAdapter(tuple[LeftOut, ...])


@dataclass(frozen=True)
class FrozenTask:
    """One resolved task.

    Attributes:
        description: the task as mteb defines it.
        request: digest of the suite file's entry (`task_digest`); "" for a task of the benchmark.
        mteb_version: version of the mteb that resolved it.
        part_of: aggregate whose score is the mean over this and its other parts, else "".
    """

    description: TaskDescription
    request: str
    mteb_version: str
    part_of: str = ""


@dataclass(frozen=True)
class Resolution:
    """Resolved tasks of a suite by name, in its order.

    Attributes:
        benchmark: the benchmark whose tasks are all among `tasks`, else None.
        left_out: tasks of the benchmark that cannot take part.
        data: state of the folders of the user's own data, by task.
    """

    tasks: Mapping[str, FrozenTask] = field(default_factory=dict)
    benchmark: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskDifference:
    """One fact of a task on which the installed mteb and the frozen task differ."""

    task: str
    what: str
    frozen: str
    found: str


def task_digest(request: SuiteTask) -> str:
    """Return a hash of the part of a suite file's entry that mteb resolves."""
    asked = request.model_dump(exclude={"k", "max_items"})
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def applicable(
    frozen: Resolution | None, requests: Sequence[SuiteTask], benchmark: str | None
) -> Resolution:
    """Return the part of a frozen resolution that fits a file's present tasks and benchmark."""
    if frozen is None:
        return Resolution()
    listed = {r.task: task_digest(r) for r in requests}
    same_benchmark = benchmark is not None and frozen.benchmark == benchmark
    kept = {
        name: task
        for name, task in frozen.tasks.items()
        if (task.request == listed[name] if name in listed else same_benchmark and not task.request)
    }
    return Resolution(
        tasks=kept,
        benchmark=benchmark if same_benchmark else None,
        left_out=frozen.left_out if same_benchmark else (),
        data={name: state for name, state in frozen.data.items() if name in kept},
    )


def merged(first: Resolution, second: Resolution) -> Resolution:
    """Return the tasks of both; the first has precedence.

    Where the first has a benchmark, tasks of the second's benchmark are left out.
    """
    one = first if first.benchmark else second
    older = {n: t for n, t in second.tasks.items() if t.request or not first.benchmark}
    return Resolution(
        tasks={**older, **first.tasks},
        benchmark=one.benchmark,
        left_out=one.left_out,
        data={**second.data, **first.data},
    )


def differences(frozen: Resolution, found: Resolution) -> list[TaskDifference]:
    """Return the differences of the installed mteb's tasks from the frozen ones, by task.

    A task that only one of them has gives a difference `present`. Another reason for leaving a task
    out, or a reason that only one of them has, gives a difference `left_out`.
    """
    rows = []
    for name in sorted({*frozen.tasks, *found.tasks}):
        before, now = frozen.tasks.get(name), found.tasks.get(name)
        if before is None or now is None:
            rows.append(TaskDifference(name, "present", _yes(before), _yes(now)))
            continue
        for what in COMPARED:
            old, new = getattr(before.description, what), getattr(now.description, what)
            if old != new:
                rows.append(TaskDifference(name, what, _shown(old, new), _shown(new, old)))
        if before.part_of != now.part_of:
            rows.append(TaskDifference(name, "part_of", before.part_of, now.part_of))
    reasons = [{x.task: x.reason for x in r.left_out} for r in (frozen, found)]
    for name in sorted({*reasons[0], *reasons[1]}):
        old, new = (r.get(name, "") for r in reasons)
        if old != new:
            rows.append(TaskDifference(name, "left_out", old, new))
    return rows


def resolution_to_json(resolution: Resolution) -> dict[str, Any]:
    """Return a JSON-able form."""
    return {
        "format": FORMAT,
        "benchmark": resolution.benchmark,
        "tasks": [
            {
                **description_to_json(t.description),
                "hf_subsets": _packed(t.description.hf_subsets),
                "request": t.request,
                "mteb_version": t.mteb_version,
                "part_of": t.part_of,
            }
            for t in resolution.tasks.values()
        ],
        "left_out": _LEFT_OUT.dump_python(resolution.left_out, mode="json"),
        "data": dict(resolution.data),
    }


def resolution_from_json(value: Mapping[str, Any]) -> Resolution | None:
    """Return the resolution that `resolution_to_json` wrote; None for another format."""
    if value.get("format") != FORMAT:
        return None
    tasks = {}
    for entry in value["tasks"]:
        facts = {k: entry[k] for k in entry if k not in ("request", "mteb_version", "part_of")}
        facts["hf_subsets"] = _unpacked(facts["hf_subsets"])
        frozen = FrozenTask(
            _DESCRIPTION.validate_python(facts),
            entry["request"],
            entry["mteb_version"],
            entry["part_of"],
        )
        tasks[frozen.description.task] = frozen
    left_out = _LEFT_OUT.validate_python(value["left_out"])
    return Resolution(tasks, value["benchmark"], left_out, value["data"])


def description_to_json(description: TaskDescription) -> dict[str, Any]:
    """Return a JSON-able form of a description."""
    return dict(_DESCRIPTION.dump_python(description, mode="json"))


def without(resolution: Resolution, tasks: Iterable[str]) -> Resolution:
    """Return a resolution without some of its tasks."""
    gone = set(tasks)
    return replace(resolution, tasks={n: t for n, t in resolution.tasks.items() if n not in gone})


def _packed(subsets: Sequence[str]) -> list[str] | dict[str, list[str]]:
    """Return subsets in a shorter form where they are all ordered pairs of some languages.

    FLORES has one subset per ordered pair of 204 languages.
    """
    if len(subsets) < 1000 or any(s.count("-") != 1 for s in subsets):
        return list(subsets)
    packed = {"every_pair_of": list(dict.fromkeys(s.split("-")[0] for s in subsets))}
    return packed if _unpacked(packed) == tuple(subsets) else list(subsets)


def _unpacked(subsets: Sequence[str] | Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    if not isinstance(subsets, Mapping):
        return tuple(subsets)
    names = subsets["every_pair_of"]
    return tuple(f"{a}-{b}" for a in names for b in names if a != b)


def _yes(task: FrozenTask | None) -> str:
    return "no" if task is None else "yes"


def _shown(value: Any, other: Any) -> str:
    """Return a text of a value; of a long list, its length and the entries that only it has."""
    if not isinstance(value, tuple):
        return str(value)
    if len(value) <= 5:
        return ", ".join(value)
    only = [v for v in value if v not in set(other)]
    return f"{len(value)}, only here: {', '.join(only[:5]) or 'none'}"
