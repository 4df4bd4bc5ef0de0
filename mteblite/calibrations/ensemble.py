"""The average of ridge and GREG: among the best at 100 items (`method.md` 2.1)."""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext
from mteblite.calibrations.full_score_greg import full_score_greg
from mteblite.calibrations.ridge import estimate_ridge


def estimate_ensemble(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return half ridge plus half GREG, shifted to full scores (n_models,)."""
    return 0.5 * (estimate_ridge(outcomes, context) + full_score_greg(outcomes, context))
