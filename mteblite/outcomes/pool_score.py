"""The score of a model on a pool, with its outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mteblite.pools.pool import Pool


@dataclass(frozen=True)
class PoolScore:
    """Outcomes of a model on a pool, and the pool's metrics.

    Attributes:
        outcomes: (n_items,) float64 in the order of `pool.items`; NaN = undefined.
        pool_score: the task's main metric over the whole pool, a mean over cells as in mteb.
        observations: (n_items, d) float32 input of `set_statistic` for set-metric types
            (e.g. similarities of a pair); None for per-item types.
        metrics: the suite's further metrics, by name.
    """

    outcomes: np.ndarray
    pool_score: float
    observations: np.ndarray | None = None
    metrics: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pool: Pool,
        outcomes: np.ndarray,
        values: Mapping[str, float],
        observations: np.ndarray | None = None,
    ) -> PoolScore:
        """Return the score of a pool from the values of all its metrics, by name."""
        main, *_ = pool.metric_names
        others = {name: values[name] for name in pool.meta.get("metrics", [])}
        return cls(outcomes, values[main], observations, others)
