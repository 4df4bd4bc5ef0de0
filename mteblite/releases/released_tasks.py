"""The selected items of a release as mteb task objects, for `mteb.evaluate` only.

A task loads its data by mteb's own code. It keeps the selected items, candidates and judgements of
queries, the train rows of a classification, and distractors of a bitext. Its score is mteb's metric
on these items, without weights and calibration, so it is not a prediction of the full score.

Some official metrics depend on other items of the task. There mteb's score on the selection is not
the statistic that mteblite calibrates: clustering is scored over mteb's bootstraps of the selected
documents, and F1 of bitext mining counts a target that is nearest to other sources.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mteblite.releases.release_files import read_release
from mteblite.releases.released_task import ReleasedTask, rebuild_pool
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.identities import rows_by_cell
from mteblite.task_types.registry import find_type
from mteblite.tasks.pinned_tasks import PinnedTasks, check_data_names, located
from mteblite.tasks.task_lookup import restricted

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask


def released_tasks(folder: Path | str, data: Mapping[str, Path] | None = None) -> list[AbsTask]:
    """Return one mteb task per task of a release, restricted to its selected items.

    Nothing is downloaded here. A task loads its data when mteb evaluates it, and raises a
    ValueError where the data set no longer holds the selected items.

    Args:
        folder: the release.
        data: folders of the user's own data, by task.

    Raises:
        ReleaseError: the folder is no release, or is damaged.
        ValueError: own data without a folder.
    """
    release = read_release(Path(folder))
    folders = {task: Path(place) for task, place in (data or {}).items()}
    check_data_names([t.description for t in release.tasks], folders)
    return [restricted_task(t, PinnedTasks(), folders) for t in release.tasks]


def restricted_task(
    released: ReleasedTask, tasks: PinnedTasks, data: Mapping[str, Path] | None = None
) -> AbsTask:
    """Return one released task as an unloaded mteb task object."""
    description = located(released.description, data or {})
    items = released.pool.items
    made = tasks.task(description)
    base = type(made)
    # mteb cannot score a split or subset without items.
    restricted(
        made,
        [s for s in description.splits if s in set(items["split"])],
        [s for s in description.hf_subsets if s in set(items["hf_subset"])],
    )

    def load_data(self: Any, num_proc: int | None = None, **_: Any) -> None:
        """Load the whole task by mteb's own code, and keep its selected items."""
        if not self.data_loaded:
            whole = tasks.loaded_task(description)
            cut_to_selection(whole, description, released)
            vars(self).update({k: v for k, v in vars(whole).items() if k not in RESTRICTED})

    # The name must not change: models' prompts and mteb's result files use it.
    made.__class__ = type(base.__name__, (base,), {"load_data": load_data})
    return made


RESTRICTED = ("hf_subsets", "_eval_splits")
"""Attributes of a task object that restrict its evaluation."""


def cut_to_selection(task: Any, description: TaskDescription, released: ReleasedTask) -> None:
    """Restrict a loaded task's data to a release's items.

    Raises:
        ValueError: the data no longer hold an item or a text of the selection.
    """
    from mteblite.tasks.task_cells import task_data

    # `task_data` draws mteb's samples. The evaluation needs the generators in their first state.
    state = copy.deepcopy((task.rng_state, task.np_rng))
    read = task_data(task, description)
    task.rng_state, task.np_rng = state
    pool = rebuild_pool(released, read)
    find_type(description.task_type).cut(task, pool, read, rows_by_cell(pool, read))
