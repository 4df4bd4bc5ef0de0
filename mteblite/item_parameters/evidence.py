"""Outcomes and full scores of the reference models on one task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from mteblite.suites.task_types import TaskTypes


@dataclass(frozen=True)
class TaskEvidence:
    """Outcomes and full scores of the reference models on one task's pool.

    Arrays are (n_models, n_items), models first; models are sorted by name and items by item_id.

    Attributes:
        kind: `per_item` or `set_metric`.
        items: (n_items rows) item_id, hf_subset, split, stratum, gold, pool_weight.
        families: family of each model.
        outcomes: (n_models, n_items); NaN = not observed.
        full_scores: (n_models,) main score of the full task; NaN = none.
        pool_scores: (n_models,) main score on the pool.
        observations: per model the (n_items, d) input of set statistics; None for `per_item`.
        part_of: aggregate whose score is the mean over this task and its other parts, else "".

    Raises:
        ValueError: shapes disagree, or items or models are not sorted and unique.
    """

    task: str
    task_type: str
    kind: str
    items: pd.DataFrame
    models: tuple[str, ...]
    families: tuple[str, ...]
    outcomes: np.ndarray
    full_scores: np.ndarray
    pool_scores: np.ndarray
    observations: tuple[np.ndarray, ...] | None = None
    part_of: str = ""
    _of_items: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        n_models, n_items = len(self.models), len(self.items)
        shapes = {
            "families": (len(self.families),) == (n_models,),
            "outcomes": self.outcomes.shape == (n_models, n_items),
            "full_scores": self.full_scores.shape == (n_models,),
            "pool_scores": self.pool_scores.shape == (n_models,),
            "observations": self.observations is None
            or (
                len(self.observations) == n_models
                and all(len(o) == n_items for o in self.observations)
            ),
        }
        for name, fits in shapes.items():
            if not fits:
                raise ValueError(
                    f"{self.task}: {name} does not fit {n_models} models and {n_items} items"
                )
        ids = self.items["item_id"].tolist()
        if ids != sorted(set(ids)) or list(self.models) != sorted(set(self.models)):
            raise ValueError(f"{self.task}: items and models must be sorted and unique")

    def only_models(self, keep: np.ndarray) -> TaskEvidence:
        """Return the evidence restricted to the models where the boolean mask is true."""
        rows = np.flatnonzero(keep)
        found = TaskEvidence(
            task=self.task,
            task_type=self.task_type,
            kind=self.kind,
            items=self.items,
            models=tuple(self.models[i] for i in rows),
            families=tuple(self.families[i] for i in rows),
            outcomes=self.outcomes[rows],
            full_scores=self.full_scores[rows],
            pool_scores=self.pool_scores[rows],
            observations=None
            if self.observations is None
            else tuple(self.observations[i] for i in rows),
            part_of=self.part_of,
        )
        # The items are the same, so cached values of the items stay valid.
        object.__setattr__(found, "_of_items", self._of_items)
        return found

    def of_items(self, name: str, make: Callable[[], Any]) -> Any:
        """Return `make()`, cached under a name; it must depend only on `items` and the task type.

        Validation restricts the same items to hundreds of sets of models.
        """
        if name not in self._of_items:
            self._of_items[name] = make()
        return self._of_items[name]


def types_of(evidences: Sequence[TaskEvidence]) -> TaskTypes:
    """Return the types of tasks with their aggregates, so that parts of one count as one task."""
    return TaskTypes(
        {e.task: e.task_type for e in evidences}, {e.task: e.part_of for e in evidences}
    )
