"""Plain frames of a loaded mteb task: the texts that mteb encodes and scores, cell by cell.

A cell is one (split, hf_subset). Every reader follows the `_evaluate_subset` of its abstract task
in `mteb/abstasks` up to the point where mteb encodes. mteb's random draws (train rows of
classification, samples and bootstraps of clustering) are made by mteb's code or its random
generator, in mteb's order, so that scores agree.

Keys and columns per type: `task_types/<type>/data.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mteblite.pools.task_data import TaskData
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.columns import TaskCell
from mteblite.task_types.registry import find_type

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask


def task_data(task: AbsTask, description: TaskDescription) -> TaskData:
    """Return a loaded task's data as frames.

    Args:
        task: fresh and loaded; clustering needs its random generator in the first state.
        description: names the cells, in mteb's order of evaluation: splits, then subsets.

    Raises:
        ValueError: the task's protocol differs from its type's, or its data are malformed.
    """
    task_type = find_type(description.task_type)
    _require_usual_protocol(task, description)
    protocol = task_type.protocol(task)
    cells = {
        (split, subset): task_type.read_cell(
            task, TaskCell(description.task, split, subset), protocol
        )
        for split in description.splits
        for subset in description.hf_subsets
    }
    notes = tuple(getattr(task, "own_notes", ()))
    return TaskData(description, cells, protocol, notes)


def _require_usual_protocol(task: AbsTask, description: TaskDescription) -> None:
    """Refuse a task class that scores with its own code; its score here would differ."""
    own = [
        cls.__name__
        for cls in type(task).__mro__
        if not cls.__module__.startswith(("mteb.abstasks", "builtins", "abc"))
        and {"evaluate", "_evaluate_subset"} & vars(cls).keys()
    ]
    if own:
        raise ValueError(
            f"{description.task} ({description.task_type}): {own[0]} scores with its own code "
            "instead of its type's; such tasks are not supported. Leave the task out of the suite"
        )
