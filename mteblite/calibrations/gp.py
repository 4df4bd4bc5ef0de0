"""gp: the average of the weighted mean and p-IRT (MTEB-lite; gp-IRT with lambda = 1/2)."""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext
from mteblite.calibrations.mean import estimate_mean
from mteblite.calibrations.pirt import estimate_pirt

MEAN_SHARE = 0.5
"""Close to the best share on ten real outcome matrices (docs/methods.md, p-IRT and gp)."""


def estimate_gp(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return half the mean plus half p-IRT (n_models,)."""
    mean, pirt = estimate_mean(outcomes, context), estimate_pirt(outcomes, context)
    return MEAN_SHARE * mean + (1.0 - MEAN_SHARE) * pirt
