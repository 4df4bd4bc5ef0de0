"""GREG moved from the pool's mean to the full score by the reference models' mean difference."""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext
from mteblite.calibrations.greg import estimate_greg


def full_score_greg(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return GREG plus the mean of full score minus pool mean; the slope stays 1.

    The shift does not depend on the selection, so it is not flattered by it.
    """
    reference = context.known_reference("greg")
    pool_means = reference.filled() @ context.pool_weights
    shift = float((reference.full_scores - pool_means).mean())
    return estimate_greg(outcomes, context) + shift
