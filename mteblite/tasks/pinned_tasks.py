"""Tasks at the data revision of a release, which the installed mteb need not pin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mteblite.suites.task_description import TaskDescription
from mteblite.tasks.mteb_tasks import MtebTasks

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask


@dataclass(frozen=True)
class PinnedTasks(MtebTasks):
    """Makes tasks of mteb at the description's revision, which mteb need not pin."""

    def task(self, description: TaskDescription) -> AbsTask:
        """Return a fresh mteb task object at the description's revision, not loaded."""
        from mteblite.tasks import task_lookup

        if description.source != "mteb":
            return super().task(description)
        made = task_lookup.fresh_task(description.task)
        if description.dataset_revision not in ("", task_lookup.revision_of(made)):
            pinned = {**made.metadata.dataset, "revision": description.dataset_revision}
            metadata = made.metadata.model_copy(update={"dataset": pinned})
            # The class gets the metadata, because mteb drops an object's when it unloads its data.
            base = type(made)
            made.__class__ = type(base.__name__, (base,), {"metadata": metadata})
        return task_lookup.restricted(made, description.splits, description.hf_subsets)


def located(description: TaskDescription, data: Mapping[str, Path]) -> TaskDescription:
    """Return the description of a released task's data on this machine.

    The user's own data and sample tasks get the revision of the files on this machine.
    `rebuild_pool` checks, text by text, that these files hold the released items.

    Args:
        description: the released description.
        data: folders of the user's own data, by task.

    Raises:
        ValueError: own data without a folder, or a folder without the task's files.
    """
    from mteblite.tasks import own_tasks, task_lookup

    if description.source == "sample":
        here = task_lookup.revision_of(task_lookup.fresh_task(description.task))
        return replace(description, dataset_revision=here)
    if description.source != "path":
        return description
    if description.task not in data:
        raise ValueError(
            f"{description.task} is a user's own data, which a release does not hold: give the "
            f"folder of its files with `--data {description.task}=FOLDER`"
        )
    return own_tasks.describe_own(
        description.task,
        description.task_type,
        data[description.task],
        description.splits,
        None,
        description.metrics,
    )


def check_data_names(descriptions: list[TaskDescription], data: Mapping[str, Path]) -> None:
    """Refuse folders for tasks that are not own data of the release.

    Raises:
        ValueError: the release has no such task, or mteb loads the task's data.
    """
    own = sorted(d.task for d in descriptions if d.source == "path")
    for name in sorted(set(data) - set(own)):
        raise ValueError(
            f"--data {name}: the release has no own data of that name; it has "
            f"{', '.join(own) or 'none'}"
        )
