"""A user's own data as an mteb task object, so that later code treats it as any other task.

README.md and a type's `own_data` list the files of the type, `task_types/own_parsing.py` their
formats, and `task_types/own_table.py` what is checked. The split is `test` unless the suite file
names others. The only subset is `default`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.own_files import content_revision
from mteblite.task_types.registry import find_type, own_data_types
from mteblite.task_types.task_type import OwnData

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask

SUBSET = "default"


def describe_own(
    task: str,
    task_type: str | None,
    path: Path,
    splits: Sequence[str] | None,
    hf_subsets: Sequence[str] | None,
    metrics: Sequence[str],
) -> TaskDescription:
    """Return the description of a user's own task; its revision is a hash of its files.

    All files are read and checked, so that an error comes before anything is encoded.

    Raises:
        ValueError: type, folder, a file, a split, a subset or a metric cannot be used; of a value
            in a file names file and row.
    """
    own = _own_data(task, task_type)
    find_type(str(task_type)).check_metrics(task, [own.main_metric, *metrics])
    if hf_subsets is not None and list(hf_subsets) != [SUBSET]:
        raise ValueError(
            f"{task}: has subsets {list(hf_subsets)}; your own data has one subset, {SUBSET!r}: "
            "leave hf_subsets out, or make a task of each"
        )
    chosen = tuple(splits) if splits is not None else ("test",)
    if not chosen:
        raise ValueError(f"{task}: needs at least one split")
    revision = content_revision(own.files(task, path, chosen))
    own.read(task, path, chosen)
    return TaskDescription(
        task=task,
        task_type=str(task_type),
        main_metric=own.main_metric,
        splits=chosen,
        hf_subsets=(SUBSET,),
        dataset_revision=revision,
        source="path",
        path=str(path),
        metrics=tuple(metrics),
    )


def own_task(description: TaskDescription) -> AbsTask:
    """Return an unloaded mteb task object over the user's files.

    Raises:
        ValueError: a file is missing.
    """
    import mteb.abstasks as abstasks
    from mteb.abstasks.task_metadata import TaskMetadata

    task, kind, folder = description.task, description.task_type, Path(description.path or "")
    own = _own_data(task, kind)
    revision = content_revision(own.files(task, folder, description.splits))
    metadata = TaskMetadata(
        name=task,
        description="The user's own data.",
        type=kind,
        category=own.category,
        eval_splits=list(description.splits),
        # "Undetermined": the language is unknown, and no score depends on it.
        eval_langs=["und-Zyyy"],
        main_score=description.main_metric,
        dataset={"path": f"own/{task}", "revision": revision},
    )
    base = getattr(abstasks, own.mteb_class)
    made: AbsTask = type(task, (base,), {"metadata": metadata, "load_data": _load_data})()
    made.own_folder = folder
    return made


def _load_data(self: Any, num_proc: int | None = None, **_: Any) -> None:
    """Fill an own task's `dataset` from its files, instead of mteb's download."""
    if not self.data_loaded:
        name, own = self.metadata.name, _own_data(self.metadata.name, self.metadata.type)
        read = own.read(name, self.own_folder, self.eval_splits)
        self.dataset, self.own_notes = own.fill(read.data), read.notes
        self.data_loaded = True


def _own_data(task: str, task_type: str | None) -> OwnData:
    allowed = own_data_types()
    own = find_type(task_type).own_data if task_type in allowed else None
    if own is None:
        raise ValueError(
            f"{task}: type {task_type!r} of your own data; expected one of {', '.join(allowed)}"
        )
    return own
