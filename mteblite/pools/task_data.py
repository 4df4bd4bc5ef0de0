"""A task's data as plain frames, without mteb: the input of pool drawing.

They come from mteb's loading code, the sample tasks or a user's files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mteblite.suites.task_description import TaskDescription


@dataclass(frozen=True)
class TaskData:
    """A loaded task.

    Attributes:
        description: the loaded task.
        cells: frames per (split, hf_subset), in mteb's order. Their keys and columns are in the
            docstring of `task_types/<type>/pool.py`.
        protocol: settings of mteb's task object that its score depends on, JSON-able
            (e.g. `seed`, `n_experiments`, `ignore_identical_ids`).
        notes: of a user's own data, what was accepted but is worth knowing.
    """

    description: TaskDescription
    cells: dict[tuple[str, str], dict[str, Any]]
    protocol: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
