"""gp with a data-driven share of the mean: lambda * mean + (1 - lambda) * p-IRT.

lambda = b^2 / (v / K + b^2), tinyBenchmarks' gp-IRT (arXiv 2402.14992; efficbench `utils.py`),
with v / (4 K) for items chosen to represent others. v is the variance of outcomes within a model;
b^2 the squared error of the response model itself, measured on families that did not fit it: theta
from every second item of the pool, error on the others' mean, minus that mean's own noise.
"""

from __future__ import annotations

import numpy as np

from mteblite.calibrations.estimator import EstimationContext, Reference
from mteblite.calibrations.mean import estimate_mean
from mteblite.calibrations.pirt import estimate_pirt
from mteblite.item_parameters.abilities import standardize
from mteblite.item_parameters.fitting import RESPONSE_MODELS
from mteblite.seeds import stable_seed

REPRESENTATIVE = frozenset({"anchor", "anchor_irt", "facility", "strat", "strat_difficulty"})
"""Selectors whose items stand for others: their mean has about a quarter of the variance."""
N_FOLDS = 5


def estimate_gp_lambda(outcomes: np.ndarray, context: EstimationContext) -> np.ndarray:
    """Return the mixture (n_models,)."""
    share = mean_share(context)
    mean, pirt = estimate_mean(outcomes, context), estimate_pirt(outcomes, context)
    return share * mean + (1.0 - share) * pirt


def mean_share(context: EstimationContext) -> float:
    """Return lambda in [0, 1]; 1/2 where the training models cannot tell."""
    reference = context.known_reference("gp_lambda")
    error = model_error(reference, context.response_model, context.bounds)
    within = float(np.nanmean(np.nanvar(reference.outcomes, axis=1)))
    k = len(context.positions) * (4 if context.method in REPRESENTATIVE else 1)
    noise = within / k * (1.0 - len(context.positions) / len(context.pool_weights))
    total = noise + error
    return error / total if np.isfinite(total) and total > 0 else 0.5


def model_error(reference: Reference, response_model: str, bounds: tuple[float, float]) -> float:
    """Return b^2: the squared error of the response model's pool mean on unseen families."""
    families = np.array(reference.families)
    names = sorted(set(families), key=lambda name: stable_seed("fold", name))
    folds = [np.isin(families, names[i::N_FOLDS]) for i in range(min(N_FOLDS, len(names)))]
    errors = [
        _errors(reference, held_out, response_model, bounds)
        for held_out in folds
        if held_out.any() and (~held_out).sum() >= 3
    ]
    return max(0.0, float(np.mean(np.concatenate(errors)))) if errors else float("nan")


def _errors(
    reference: Reference, held_out: np.ndarray, response_model: str, bounds: tuple[float, float]
) -> np.ndarray:
    """Squared errors of held-out models' means on odd items, less their noise (n_held_out,)."""
    model = RESPONSE_MODELS[response_model]
    ability = standardize(reference.full_scores[~held_out])
    parameters = model.fit(
        ability.theta, reference.outcomes[~held_out], np.ones(int((~held_out).sum()))
    )
    filled = reference.filled()[held_out]
    even, odd = (np.arange(start, filled.shape[1], 2) for start in (0, 1))
    if len(odd) == 0:
        return np.full(int(held_out.sum()), np.nan)
    theta = model.ability(parameters.take(even), filled[:, even])
    expected = np.clip(model.expected(parameters.take(odd), theta), *bounds)
    residual = np.where(np.isfinite(expected), filled[:, odd] - expected, 0.0)
    noise = residual.var(axis=1) / len(odd)
    return np.asarray(residual.mean(axis=1) ** 2 - noise)
