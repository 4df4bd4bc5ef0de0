"""Estimates of training models by fits that did not see them: what honest calibration needs.

Families are dealt into a few fixed groups. A model is estimated by a fit without its group and
without the groups of the models held out already. Leaving out whole groups, not single families,
makes the training sets of different folds coincide: 33 family folds with 6 groups need 21 inner
fits, not 165 (docs/methods.md, Cross-fitting).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from mteblite.seeds import stable_seed

N_GROUPS = 6
MIN_MODELS = 3
"""Fewest models that an inner fit may train on."""
MIN_SHARE = 0.5
"""Least share of the training models that an inner fit must keep; else groups are dealt anew."""

RawEstimates = Callable[[np.ndarray], np.ndarray]
"""Training mask (n_models,) -> raw estimates of all models (n_models,)."""


def family_groups(families: Sequence[str], n_groups: int = N_GROUPS) -> np.ndarray:
    """Return the group of each model (n_models,); families stay whole, names decide the order."""
    return _family_groups(tuple(families), n_groups)


@lru_cache(maxsize=1024)
def _family_groups(families: tuple[str, ...], n_groups: int) -> np.ndarray:
    """The same few zoos come back thousands of times."""
    names = sorted(set(families), key=lambda name: (stable_seed("group", name), name))
    group = {name: place % n_groups for place, name in enumerate(names)}
    found = np.array([group[family] for family in families])
    found.flags.writeable = False
    return found


def inner_folds(
    train: np.ndarray, families: Sequence[str], n_groups: int = N_GROUPS
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (training mask, held-out mask) of the inner folds of a training set.

    Args:
        train: (n_models,) mask of the models that may be used.
        families: (n_models,) family of each model.
        n_groups: groups that families are dealt into.

    Yields:
        Masks over all models: the held-out masks partition `train`; no family is on both sides
        and neither holds a model outside `train`. Nothing where there are too few models.
    """
    group = family_groups(families, n_groups)
    spent = np.isin(group, group[~train])
    if (train & ~spent).sum() * (1 - 1 / n_groups) < MIN_SHARE * train.sum():
        # Held-out models are spread over most groups: deal the training families alone.
        group = np.full(len(train), -1)
        group[train] = family_groups([f for f, t in zip(families, train, strict=True) if t])
        spent = np.zeros(len(train), dtype=bool)
    for number in np.unique(group[train]):
        held_out = train & (group == number)
        inner = train & ~spent & (group != number)
        if inner.sum() >= MIN_MODELS:
            yield inner, held_out


def cross_fitted(raw: RawEstimates, train: np.ndarray, families: Sequence[str]) -> np.ndarray:
    """Return raw estimates (n_models,) of the training models by fits without them; NaN elsewhere.

    With too few families or models to leave any out, the fit on all of them steps in.
    """
    found = np.full(len(train), np.nan)
    for inner, held_out in inner_folds(train, families):
        found[held_out] = raw(inner)[held_out]
    if not np.isfinite(found).any():
        found[train] = raw(train)[train]
    return found
