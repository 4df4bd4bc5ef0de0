"""Estimates of training models by fits without them, for unbiased calibration.

Families are divided into fixed groups. The estimate of a model comes from a fit without its group
and without the groups of the held-out models. With whole groups instead of single families,
different folds have the same training sets: 33 family folds with 6 groups need 21 inner fits
instead of 165 (docs/methods.md, Cross-fitting).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from mteblite.seeds import stable_seed

N_GROUPS = 6
MIN_MODELS = 3
"""Fewest training models of an inner fit."""
MIN_SHARE = 0.5
"""Least share of the training models in an inner fit; below it, families are divided again."""

RawEstimates = Callable[[np.ndarray], np.ndarray]
"""Training mask (n_models,) -> raw estimates of all models (n_models,)."""


def family_groups(families: Sequence[str]) -> np.ndarray:
    """Return the group (n_models,) of each model; it depends only on the names of the families."""
    return _family_groups(tuple(families))


@lru_cache(maxsize=1024)
def _family_groups(families: tuple[str, ...]) -> np.ndarray:
    """Return the groups; cached, because folds ask thousands of times for a few sets of models."""
    names = sorted(set(families), key=lambda name: (stable_seed("group", name), name))
    group = {name: place % N_GROUPS for place, name in enumerate(names)}
    found = np.array([group[family] for family in families])
    found.flags.writeable = False
    return found


def inner_folds(
    train: np.ndarray, families: Sequence[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (training mask, held-out mask) of the inner folds of a training mask (n_models,).

    The held-out masks partition `train`, and no family is in both masks of a fold. There are no
    folds with too few models.
    """
    group = family_groups(families)
    spent = np.isin(group, group[~train])
    if (train & ~spent).sum() * (1 - 1 / N_GROUPS) < MIN_SHARE * train.sum():
        # Held-out models are in most groups: divide the training families alone.
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

    With too few families or models for any inner fold, the estimates come from the fit on all.
    """
    found = np.full(len(train), np.nan)
    for inner, held_out in inner_folds(train, families):
        found[held_out] = raw(inner)[held_out]
    if not np.isfinite(found).any():
        found[train] = raw(train)[train]
    return found
