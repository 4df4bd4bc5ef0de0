"""p-IRT: pool mean of observed outcomes and of predictions from theta for the other items.

Maia Polo et al. 2024 (arXiv 2402.14992), section 3.2; docs/methods.md, p-IRT and gp. It does not
use selection weights.
"""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext
from mteblite.item_parameters.fitting import RESPONSE_MODELS


def estimate_pirt(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return the pool-weighted mean (n_models,) of observed and predicted outcomes.

    Theta is the MAP under a N(0, 1) prior from the selected items. Pool items without an outcome of
    a training model have no prediction and are left out of the mean.
    """
    model = RESPONSE_MODELS[context.response_model]
    chosen = context.positions
    theta = model.ability(context.parameters.take(chosen), outcomes)
    pool = np.clip(model.expected(context.parameters, theta), *context.bounds)
    pool[:, chosen] = np.where(np.isfinite(outcomes), outcomes, pool[:, chosen])
    known = np.isfinite(pool)
    estimate = np.where(known, pool, 0.0) @ context.pool_weights
    if not known.all():
        estimate = estimate / (known @ context.pool_weights)
    return np.where(np.isfinite(outcomes).any(axis=1), estimate, np.nan)
