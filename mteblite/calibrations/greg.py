"""GREG: ridge-assisted pool mean. What was observed counts; the rest is regressed item by item.

A new model's outcomes on the k selected items are regressed on the reference models' outcomes of
the same items, and the regression predicts the remaining items (docs/methods.md, GREG; what
arXiv 2506.07673 reports as AIPW). It learns from the model itself how it relates to the reference
models, so it holds beyond their range.
"""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext

PENALTY_PER_MODEL = 0.25
"""Ridge penalty per reference model: 10 at 40 models, for outcomes in [0, 1]."""


def estimate_greg(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return the pool-weighted mean (n_models,) of observed and regressed outcomes.

    Training models are among their own predictors, so estimates of them are too good: calibrate on
    cross-fitted ones, or not at all.
    """
    features = context.known_reference("greg").filled().T
    found = np.full(len(outcomes), np.nan)
    seen = np.isfinite(outcomes)
    for pattern in np.unique(seen, axis=0):
        if not pattern.any():
            continue
        rows = np.flatnonzero((seen == pattern).all(axis=1))
        places = context.positions[pattern]
        found[rows] = _pool_mean(features, places, outcomes[np.ix_(rows, pattern)], context)
    return found


def _pool_mean(
    features: np.ndarray, places: np.ndarray, y: np.ndarray, context: EstimationContext
) -> np.ndarray:
    """Estimates (n,) of models observed on the same items: features (n_items, d), y (n, k)."""
    centred = features - features[places].mean(axis=0)
    known = centred[places]
    level = y.mean(axis=1, keepdims=True)
    kernel = known @ known.T + PENALTY_PER_MODEL * features.shape[1] * np.eye(len(places))
    dual = np.linalg.solve(kernel, (y - level).T)
    pool = np.clip(level.T + centred @ (known.T @ dual), *context.bounds)
    pool[places] = y.T
    return np.asarray(context.pool_weights @ pool)
