"""The best of many random draws: the one whose line predicts held-out families best.

Every draw of K items gives each training model an estimate. A line from estimate to full score is
fitted without one family after the other, and predicts this family. The draw with the least error
is selected. What is chosen is therefore what counts, a small error after calibration, and not a
property of items that ought to lead to it. The draws do not depend on the training models, so that
the folds of a validation share the estimates (docs/methods.md, Best draw).
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit
from mteblite.lines import fit_lines
from mteblite.selections.random_items import draw_uniformly
from mteblite.selections.selector import Measure, Selected
from mteblite.selections.stratified import draw_by_label

DRAWS = 200


def select_best_draw(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator, measure: Measure
) -> Selected:
    """Select the draw of k items with the least held-out error over families.

    Per-item tasks draw uniformly, set metrics inside labels or gold bins. A draw with an undefined
    estimate is passed over; where all are, the first is selected.
    """
    del fit
    random = draw_uniformly if evidence.kind == "per_item" else draw_by_label
    draws = [random(evidence, k, rng) for _ in range(DRAWS)]
    estimates = np.array([measure(*one) for one in draws])
    errors = held_out_errors(estimates, evidence.full_scores, evidence.families)
    return draws[int(np.argmin(np.where(np.isfinite(errors), errors, np.inf)))]


def held_out_errors(
    estimates: np.ndarray, scores: np.ndarray, families: tuple[str, ...]
) -> np.ndarray:
    """Return the mean square error of each draw's line on families that it was fitted without.

    Args:
        estimates: (n_draws, n_models).
        scores: (n_models,) full scores.
        families: (n_models,); each family counts once.

    Returns:
        (n_draws,); NaN where an estimate of a model is undefined, or there is only one family.
    """
    of_model = np.asarray(families, dtype=str)
    errors = []
    for family in sorted(set(families)):
        out = of_model == family
        if not np.isfinite(estimates[:, ~out]).any():
            return np.full(len(estimates), np.nan)
        slope, intercept = fit_lines(estimates[:, ~out], scores[~out])
        predicted = slope[:, None] * estimates[:, out] + intercept[:, None]
        errors.append(((predicted - scores[out]) ** 2).mean(axis=1))
    return np.asarray(np.mean(errors, axis=0))
