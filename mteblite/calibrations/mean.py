"""Weighted mean of the outcomes on the selected items."""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext


def estimate_mean(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return the selection-weighted mean (n_models,)."""
    return weighted_mean(outcomes, context.weights)


def weighted_mean(outcomes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the mean over the observed items of (n_models, k); weights are renormalised."""
    seen = np.isfinite(outcomes)
    if seen.all():
        return outcomes @ (weights / weights.sum())
    mass = seen @ weights
    total = np.where(seen, outcomes, 0.0) @ weights
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), np.nan)
