"""Fisher information under a variance that follows the mean, with post-stratified weights.

For graded outcomes the linear-Gaussian information is the same for every ability, so that greedy
takes the k largest without regard to each other. With variance phi * mu * (1 - mu) items differ in
where they inform, and greedy covers all abilities (`method.md` 3.4, 3.5). Each item weighs the pool
mass whose difficulty is nearest to its own, which removes most of the bias that equal weights have.
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import (
    RESPONSE_MODELS,
    ItemFit,
    fit_items,
    in_unit_range,
    is_binary,
)
from mteblite.selections.fisher import eligible_items, greedy
from mteblite.selections.quotas import within_strata
from mteblite.selections.selector import Selected, pool_weights
from mteblite.selections.strata import difficulty


def select_fisher_het(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator
) -> Selected:
    """Choose k items within the strata; items without gain are filled up at random."""
    fit = heteroskedastic_fit(evidence, fit)
    model = RESPONSE_MODELS[fit.response_model]
    information = np.array(model.information(fit.parameters, fit.ability.theta), dtype=float)
    eligible = eligible_items(fit, information)
    level, mass = difficulty(evidence.outcomes), pool_weights(evidence)

    def choose(members: np.ndarray, count: int) -> Selected:
        candidates = np.flatnonzero(eligible[members])
        places = candidates[greedy(information[:, members[candidates]], count)]
        if len(places) < count:
            rest = np.setdiff1d(np.arange(len(members)), places)
            places = np.concatenate([places, rng.permutation(rest)[: count - len(places)]])
        return places, difficulty_weights(level[members], mass[members], places)

    return within_strata(evidence, k, rng, choose)


def heteroskedastic_fit(evidence: TaskEvidence, fit: ItemFit) -> ItemFit:
    """Return the fit with a variance that follows the mean, where outcomes are graded."""
    if in_unit_range(evidence.outcomes) and not is_binary(evidence.outcomes):
        return fit_items(evidence, "heteroskedastic")
    return fit


def difficulty_weights(level: np.ndarray, mass: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the mass (k,) of the items whose difficulty is nearest to each chosen one's.

    Args:
        level: (n,) difficulty.
        mass: (n,) positive.
        chosen: (k,) positions; each stands at least for itself. Items of equal difficulty share.
    """
    distance = np.round(np.abs(level[:, None] - level[chosen]), 10)
    nearest = distance == distance.min(axis=1, keepdims=True)
    nearest[chosen] = np.eye(len(chosen), dtype=bool)
    share = nearest / nearest.sum(axis=1, keepdims=True)
    return np.asarray(mass @ share)
