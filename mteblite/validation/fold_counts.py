"""Items per task inside a validation fold, under a token budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mteblite.calibrations.cross_fitting import MIN_SHARE, family_groups
from mteblite.selections.sharing import Sharing
from mteblite.validation.folds import Fold


def counts_of_fold(
    sharing: Sharing, families: Mapping[str, str]
) -> Callable[[Fold], Mapping[str, int]]:
    """Return a function from a fold to the items of each task, without use of held-out models.

    The fold's cross-fitting groups are hidden as a whole, so that folds of one group have the same
    numbers of items and share their inner fits. Where this would hide most families, as in the
    frontier fold, only the fold's own families are hidden.
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
