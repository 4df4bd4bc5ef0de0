"""A task's data as plain frames, free of mteb: what pools are drawn from.

They come from mteb's own loading code, the sample tasks or a user's files, so pool drawing never
sees mteb.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mteblite.suites.task_description import TaskDescription


@dataclass(frozen=True)
class TaskData:
    """A loaded task.

    Attributes:
        description: what was loaded.
        cells: frames per (split, hf_subset), in mteb's order; keys and columns per task type are
            documented at the head of `pools/<type>.py`, which reads them.
        protocol: settings of mteb's task object that its score depends on, JSON-able
            (e.g. `seed`, `n_experiments`, `ignore_identical_ids`).
    """

    description: TaskDescription
    cells: dict[tuple[str, str], dict[str, Any]]
    protocol: dict[str, Any] = field(default_factory=dict)
