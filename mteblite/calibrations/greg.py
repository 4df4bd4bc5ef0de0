"""GREG: pool mean of observed outcomes and of ridge predictions for the other items.

A new model's outcomes on the k selected items are regressed on the reference models' outcomes on
the same items, and the regression predicts the remaining items (docs/methods.md, GREG;
arXiv 2506.07673 reports it as AIPW). The regression uses the model's own outcomes, so it is valid
beyond the range of the reference models.
"""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext

PENALTY_PER_MODEL = 0.25
"""Ridge penalty per reference model: 10 at 40 models, for outcomes in [0, 1]."""


def estimate_greg(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return the pool-weighted mean (n_models,) of observed and regressed outcomes.

    Training models are among their own predictors, so their own estimates are too good. Calibrate
    on cross-fitted estimates, or not at all.
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
    """Return estimates (n,) from outcomes y (n, k) on the same items; features (n_items, d)."""
    centred = features - features[places].mean(axis=0)
    known = centred[places]
    level = y.mean(axis=1, keepdims=True)
    kernel = known @ known.T + PENALTY_PER_MODEL * features.shape[1] * np.eye(len(places))
    dual = np.linalg.solve(kernel, (y - level).T)
    pool = np.clip(level.T + centred @ (known.T @ dual), *context.bounds)
    pool[places] = y.T
    return np.asarray(context.pool_weights @ pool)
