"""Random items stratified by difficulty within cells and labels, weighted by their stratum's mass.

The safest selector for models better than the reference models (docs/methods.md, Difficulty
strata): it uses only the difficulty of items. `strat` is the same for per-item tasks of one cell.
This selector also gives every subset its quota, and applies to set metrics.
"""

from __future__ import annotations

import numpy as np

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import ItemFit
from mteblite.selections.quotas import within_strata
from mteblite.selections.selector import Measure, Selected, pool_weights
from mteblite.selections.strata import difficulty


def select_strat_difficulty(
    evidence: TaskEvidence, fit: ItemFit, k: int, rng: np.random.Generator, measure: Measure
) -> Selected:
    """Draw one item of each difficulty quantile of each stratum."""
    del fit, measure
    level, mass = difficulty(evidence.outcomes), pool_weights(evidence)

    def choose(members: np.ndarray, count: int) -> Selected:
        order = np.lexsort((members, level[members]))
        groups = np.array_split(order, count)
        uniform = rng.random(count)
        places = [group[int(u * len(group))] for group, u in zip(groups, uniform, strict=True)]
        return np.array(places), np.array([mass[members[group]].sum() for group in groups])

    return within_strata(evidence, k, rng, choose)
