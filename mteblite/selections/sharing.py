"""Items of each task of a suite under a token budget, by cost and spread."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.seeds import generator
from mteblite.selections.budget import MIN_ITEMS, allocate_budget, item_spread, statistic_spread
from mteblite.selections.selector import Statistic, set_statistics
from mteblite.suites.means import macro_weights
from mteblite.task_types.scoring import set_statistic

MIN_SPREAD = 1e-4
DRAWS = 10
"""Random selections that the spread of a set metric is measured on."""


@dataclass
class Sharing:
    """A suite's token budget, divided over its tasks for the macro mean; see `budget.py`.

    Attributes:
        evidences: the tasks with the kept reference models.
        item_tokens: by task, tokens of one more item.
        k_by_task: items of each task without a budget; tasks without evidence keep this number.
        seed: of the draws.
        budget: tokens for the items of all tasks; None = the cost of `k_by_task`.
        statistic: the official set statistic.
    """

    evidences: Sequence[TaskEvidence]
    item_tokens: Mapping[str, float]
    k_by_task: Mapping[str, int]
    seed: int
    budget: float | None = None
    statistic: Statistic = set_statistic
    _values: dict[tuple[str, bytes], np.ndarray] = field(default_factory=dict, repr=False)
    _counts: dict[frozenset[str], dict[str, int]] = field(default_factory=dict, repr=False)

    def counts(self, hidden: Collection[str] = ()) -> dict[str, int]:
        """Return the number of items of each task, from the families that are not hidden.

        Raises:
            ValueError: the budget does not pay the minimum number of items.
        """
        key = frozenset(hidden)
        if key not in self._counts:
            self._counts[key] = self._share(key)
        return self._counts[key]

    def spreads(self, hidden: Collection[str] = ()) -> dict[str, float]:
        """Return by task the spread of a score per item; NaN where it is undefined."""
        return {e.task: self._spread(e, frozenset(hidden)) for e in self.evidences}

    def _share(self, hidden: frozenset[str]) -> dict[str, int]:
        tasks = sorted(e.task for e in self.evidences)
        by_task = {e.task: e for e in self.evidences}
        types = types_of(self.evidences)
        found = self.spreads(hidden)
        spread = np.array([found[t] for t in tasks])
        known = spread[np.isfinite(spread) & (spread > 0)]
        usual = float(np.median(known)) if len(known) else 1.0
        spread = np.maximum(np.where(np.isfinite(spread), spread, usual), MIN_SPREAD)
        costs = np.array([self.item_tokens[t] for t in tasks], dtype=float)
        sizes = np.array([len(by_task[t].items) for t in tasks])
        asked = np.minimum([self.k_by_task[t] for t in tasks], sizes)
        budget = float(costs @ asked) if self.budget is None else self.budget
        counts = allocate_budget(
            macro_weights(tasks, types) * spread, costs, sizes, budget,
            # Less than a small K, so that a part of the budget can be divided.
            minimum=int(min(MIN_ITEMS, max(2, asked.min() // 2))),
        )  # fmt: skip
        return {**self.k_by_task, **dict(zip(tasks, counts.tolist(), strict=True))}

    def _spread(self, evidence: TaskEvidence, hidden: frozenset[str]) -> float:
        known = np.array([f not in hidden for f in evidence.families], dtype=bool)
        if evidence.kind == "per_item":
            return item_spread(evidence.outcomes[known]) if known.any() else float("nan")
        scores = np.where(known, evidence.full_scores, np.nan)
        rng = generator(self.seed, evidence.task, "spread")
        return statistic_spread(
            lambda positions: self._statistics(evidence, positions), scores,
            len(evidence.items), rng, draws=DRAWS,
        )  # fmt: skip

    def _statistics(self, evidence: TaskEvidence, positions: np.ndarray) -> np.ndarray:
        """Return the set statistic of every model on some items (n_models,); cached."""
        key = (evidence.task, positions.tobytes())
        if key not in self._values:
            weights = np.full(len(positions), 1.0 / len(positions))
            self._values[key] = set_statistics(evidence, positions, weights, self.statistic)
        return self._values[key]
