"""theta-direct: the full score that the estimated ability stands for (`method.md` 3.7).

Aims at the full score, not the pool's mean, so it needs no calibration. The N(0, 1) prior pulls it
towards the mean of the reference models where the items say little.
"""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext
from mteblite.item_parameters.abilities import standardize
from mteblite.item_parameters.fitting import RESPONSE_MODELS


def estimate_theta(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return mean + sd * theta (n_models,), with the reference models' mean and sd."""
    ability = standardize(context.known_reference("theta").full_scores)
    model = RESPONSE_MODELS[context.response_model]
    theta = model.ability(context.parameters.take(context.positions), outcomes)
    found = ability.mean + ability.sd * theta
    return np.where(np.isfinite(outcomes).any(axis=1), found, np.nan)
