"""The selected items of a release as mteb task objects, for `mteb.evaluate` and nothing else.

A task loads its data by mteb's own code and keeps only the selected items with what they need:
candidates and judgements of queries, the train rows of a classification, distractors of a bitext.
Its score is mteb's metric on these items, every item counting the same within its subset: no
weights, no calibration, so not yet a prediction of the full score.

Where the official metric depends on what surrounds the items, mteb's score on the selection is not
the statistic that mteblite calibrates: clustering is scored over mteb's bootstraps of the selected
documents, and F1 of bitext mining counts a target that attracts other sources.
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

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask


def released_tasks(folder: Path | str, data: Mapping[str, Path] | None = None) -> list[AbsTask]:
    """Return one mteb task per task of a release, restricted to its selected items.

    Nothing is downloaded here: a task loads and cuts its data when mteb asks for them, and says
    so if the data set no longer holds the selected items.

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
    # Only subsets with an item: of an empty one mteb has no score.
    made.filter_eval_splits([s for s in description.splits if s in set(items["split"])])
    made.filter_languages(
        None, hf_subsets=[s for s in description.hf_subsets if s in set(items["hf_subset"])]
    )

    def load_data(self: Any, num_proc: int | None = None, **_: Any) -> None:
        """Load the whole task by mteb's own code, and keep the selected items of it."""
        if not self.data_loaded:
            whole = tasks.loaded_task(description)
            cut_to_selection(whole, description, released)
            vars(self).update({k: v for k, v in vars(whole).items() if k not in RESTRICTED})

    # The name stays: prompts of models and mteb's result files go by it.
    made.__class__ = type(base.__name__, (base,), {"load_data": load_data})
    return made


RESTRICTED = ("hf_subsets", "_eval_splits")
"""Attributes of a task object that say what of it is evaluated."""


def cut_to_selection(task: Any, description: TaskDescription, released: ReleasedTask) -> None:
    """Cut a loaded task's data to a release's items.

    Raises:
        ValueError: the data no longer hold an item or a text of the selection.
    """
    from mteblite.tasks.task_cells import task_data

    # Reading draws mteb's samples; the evaluation must find its generators untouched.
    state = copy.deepcopy((task.rng_state, task.np_rng))
    read = task_data(task, description)
    task.rng_state, task.np_rng = state
    pool = rebuild_pool(released, read)
    find_type(description.task_type).cut(task, pool, read, rows_by_cell(pool, read))
