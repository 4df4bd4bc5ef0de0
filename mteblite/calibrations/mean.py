"""Weighted mean of the outcomes on the selected items."""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext
from mteblite.selections.selector import weighted_mean


def estimate_mean(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return the selection-weighted mean (n_models,)."""
    return weighted_mean(outcomes, context.weights)
