"""Items per task inside a validation fold, where a budget is shared out by what models did."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mteblite.calibrations.cross_fitting import MIN_SHARE, family_groups
from mteblite.selections.sharing import Sharing
from mteblite.validation.folds import Fold


def counts_of_fold(
    sharing: Sharing, families: Mapping[str, str]
) -> Callable[[Fold], Mapping[str, int]]:
    """Return how many items each fold takes, by no model that it holds out.

    Families are hidden by the groups of cross-fitting: folds of one group then select equally many
    items and share their inner fits. Where groups would hide most families, as in the frontier
    fold, only the fold's own are hidden.

    Args:
        sharing: the suite's budget.
        families: family of every model.
    """
    names = sorted(set(families.values()))
    group = dict(zip(names, family_groups(names).tolist(), strict=True))

    def counts(fold: Fold) -> Mapping[str, int]:
        own = {families[m] for m in fold.held_out | fold.excluded}
        spent = {group[f] for f in own}
        grouped = frozenset(f for f in names if group[f] in spent)
        left = np.mean([f not in grouped for f in names])
        return sharing.counts(grouped if left >= MIN_SHARE else frozenset(own))

    return counts
