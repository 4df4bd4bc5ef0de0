"""Whether a model's scores are those of chance, as of random vectors.

A task is observed a second time with the model's vectors dealt to other texts of the same prompt
type. That is a permutation test, so it needs no level of chance for any metric.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.lite_scores.observing import observe_selection
from mteblite.lite_scores.redraws import redraw_variance, redrawn
from mteblite.pools.pool import Pool
from mteblite.seeds import generator

MIN_TASKS = 3
"""On fewer tasks a sound model may be at chance."""
CHANCE = 2.0
"""A model is at chance where its combined deviation is below."""
SURE = 4.0
"""Above, no further task is observed twice."""


@dataclass
class ChanceTest:
    """Deviations of a model's estimates from those of its dealt vectors, in standard deviations."""

    deviations: list[float] = field(default_factory=list)

    def add(
        self, task: FittedTask, pool: Pool, vectors: np.ndarray, observed: np.ndarray,
        similarity: str,
    ) -> None:  # fmt: skip
        """Add a task, unless those before already show that the model is above chance.

        Args:
            task: the fitted task.
            pool: restricted to its selection.
            vectors: (n_texts, dim) of the pool's texts, which are not all equal.
            observed: what the model did on the selection.
            similarity: the model's similarity.
        """
        if len(self.deviations) >= MIN_TASKS and self._combined() >= SURE:
            return
        kinds = pool.texts["prompt_type"].to_numpy(str)
        rng, dealt = generator(0, task.task, "dealt"), np.empty_like(vectors)
        for kind in sorted(set(kinds)):
            rows = np.flatnonzero(kinds == kind)
            dealt[rows] = vectors[rng.permutation(rows)]
        other = observe_selection(task.kind, pool, dealt, task.selection, similarity=similarity)
        spread = redraw_variance(*redrawn(task, [observed, other])) ** 0.5
        gap = (task.raw(observed) - task.raw(other)) * task.calibration.slope
        if np.isfinite(gap) and spread > 0:
            self.deviations.append(gap / spread)

    def warning(self) -> list[str]:
        """Return the warning that the model is at chance; [] where it is not."""
        if len(self.deviations) < MIN_TASKS or self._combined() >= CHANCE:
            return []
        return [
            f"random: on {len(self.deviations)} tasks the model scores no better than its own "
            "vectors do when they are dealt to other texts, so its scores are those of chance"
        ]

    def _combined(self) -> float:
        """Return the combined deviation of all tasks, N(0, 1) at chance (Stouffer et al. 1949)."""
        return float(np.sum(self.deviations) / np.sqrt(len(self.deviations)))
