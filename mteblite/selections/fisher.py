"""Greedy Fisher information: items with the most information on the training models' abilities.

Maximises f(S) = sum over models of log(PRIOR_PRECISION + information of S at theta). f is monotone
submodular, so greedy selection reaches 1 - 1/e of the maximum. With the N(0, 1) prior of theta, f
is the log posterior precision (docs/methods.md, Fisher information). In the linear model
information does not depend on theta, and greedy selection takes the k most informative items.
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import RESPONSE_MODELS, ItemFit
from mteblite.selections.selector import Measure, Selected, pool_weights

PRIOR_PRECISION = 1.0
MIN_MODELS = 5
"""Items observed on fewer models are not selected by their parameters."""
MIN_GAIN = 1e-12


def select_fisher(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator, measure: Measure
) -> Selected:
    """Select k items with weights 1/k.

    Items with negative discrimination are left out, because they are often mislabelled. Where fewer
    than k items have a gain, random items complete the selection.
    """
    model = RESPONSE_MODELS[fit.response_model]
    theta = fit.ability.theta
    information = np.array(model.information(fit.parameters, theta), dtype=float)
    candidates = np.flatnonzero(eligible_items(fit, information))
    if model.constant_information:
        chosen = candidates[_largest(information[0, candidates], k)]
    else:
        chosen = candidates[greedy(information[:, candidates], k)]
    if len(chosen) < k:
        chosen = np.concatenate([chosen, _fill(evidence, chosen, k - len(chosen), rng)])
    return chosen, np.full(k, 1.0 / k)


def eligible_items(fit: ItemFit, information: np.ndarray) -> np.ndarray:
    """Return the mask (n_items,) of items whose information (n_models, n_items) is reliable."""
    seen_enough = fit.parameters.n_models >= min(MIN_MODELS, len(fit.models))
    return seen_enough & (fit.parameters.slope > 0) & np.isfinite(information).all(axis=0)


def greedy(information: np.ndarray, k: int) -> np.ndarray:
    """Return up to k items in greedy order, ties by position, by (n_models, n_items) information.

    There are fewer than k where no other item has a gain.
    """
    total = np.full(len(information), PRIOR_PRECISION)
    free = np.ones(information.shape[1], dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(k, information.shape[1]):
        gain = np.log1p(information / total[:, None]).sum(axis=0).round(12)
        best = int(np.argmax(np.where(free, gain, -1.0)))
        if gain[best] < MIN_GAIN:
            break
        chosen.append(best)
        free[best] = False
        total = total + information[:, best]
    return np.array(chosen, dtype=int)


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of the k largest values, ties by position, without zeros."""
    order = np.lexsort((np.arange(len(values)), -np.round(values, 12)))[:k]
    return order[values[order] >= MIN_GAIN]


def _fill(
    evidence: TaskEvidence, chosen: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return further random items among those with positive pool weight."""
    rest = np.setdiff1d(np.flatnonzero(pool_weights(evidence) > 0), chosen)
    return rng.permutation(rest)[:count]
