"""What scoring a model on a pool gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mteblite.pools.pool import Pool


@dataclass(frozen=True)
class PoolScore:
    """What scoring a model on a pool gives.

    Attributes:
        outcomes: (n_items,) float64 in the order of `pool.items`; NaN = not defined there.
        pool_score: the task's main metric over the whole pool, a mean over cells as in mteb.
        observations: (n_items, d) float32 for set-metric types, what `set_statistic` needs
            (e.g. similarities of a pair); None for per-item types.
        metrics: further metrics asked for by the suite, by name.
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
        """Return the score of a pool from the values of all metrics asked for, by name."""
        main, *_ = pool.metric_names
        others = {name: values[name] for name in pool.meta.get("metrics", [])}
        return cls(outcomes, values[main], observations, others)
