"""Dispersion of outcomes in [0, 1] whose variance follows their mean: phi * mu * (1 - mu).

Graded outcomes pile up at 0 and 1 (nDCG of a query with one relevant document takes eleven values),
so their variance shrinks at the ends. phi is 1 for zeros and ones, below 1 for milder grades.
"""

from __future__ import annotations

import numpy as np

PRIOR_MODELS = 4.0
"""Weight of the task's median dispersion in each item's own, in models."""
MIN_DISPERSION = 1e-4
EDGE = 0.02
"""Means are kept this far from 0 and 1 where they stand for a variance."""


def unit_variance(mean: np.ndarray) -> np.ndarray:
    """Return mu * (1 - mu) with mu clipped to [EDGE, 1 - EDGE]."""
    inner = np.clip(mean, EDGE, 1.0 - EDGE)
    return np.asarray(inner * (1.0 - inner))


def dispersion(
    outcomes: np.ndarray, mean: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each item's dispersion and number of models.

    The mean squared Pearson residual with two degrees of freedom taken off, shrunk towards the
    median over items (`method.md` 3.2).

    Args:
        outcomes: (n_models, n_items); NaN = not observed.
        mean: (n_models, n_items) expected outcomes.
        weights: (n_models,) positive.

    Returns:
        (n_items,) dispersion, NaN where no model was observed, and (n_items,) counts.
    """
    seen = np.isfinite(outcomes)
    count = seen.sum(axis=0)
    residual = np.where(seen, outcomes - mean, 0.0)
    squares = (weights[:, None] * residual**2 / unit_variance(np.where(seen, mean, 0.5))).sum(
        axis=0
    )
    freedom = np.maximum(count - 2, 0)
    observed = count > 0
    if not observed.any():
        return np.full(len(count), np.nan), count
    typical = float(np.median(squares[observed] / np.maximum(freedom[observed], 1)))
    shrunk = (squares + PRIOR_MODELS * typical) / (freedom + PRIOR_MODELS)
    return np.where(observed, np.maximum(shrunk, MIN_DISPERSION), np.nan), count
