"""A model's ability on a task: its full score, standardised on the training models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MIN_MODELS = 3
MIN_SPREAD = 1e-9


@dataclass(frozen=True)
class Abilities:
    """Standardised full scores.

    Attributes:
        theta: (n_models,) ability; NaN where the model has no full score.
        mean: mean full score of the training models.
        sd: their population standard deviation (ddof 0).
        usable: False with fewer than 3 models or without spread. Theta is then 0, and methods that
            need abilities use their fallback.
    """

    theta: np.ndarray
    mean: float
    sd: float
    usable: bool


def standardize(full_scores: np.ndarray) -> Abilities:
    """Return the abilities of training models (docs/methods.md, Abilities).

    Args:
        full_scores: (n_models,) full scores of the training models only; NaN = none.

    Raises:
        ValueError: no model has a full score.
    """
    scores = np.asarray(full_scores, dtype=float)
    known = np.isfinite(scores)
    if not known.any():
        raise ValueError("no reference model has a full score: add reference scores for the task")
    mean, sd = float(scores[known].mean()), float(scores[known].std())
    usable = has_spread(int(known.sum()), sd)
    theta = (scores - mean) / sd if usable else np.zeros_like(scores)
    return Abilities(theta=np.where(known, theta, np.nan), mean=mean, sd=sd, usable=usable)


def has_spread(n_models: int, sd: float) -> bool:
    """Return whether this many models with this standard deviation suffice for abilities."""
    return n_models >= MIN_MODELS and sd >= MIN_SPREAD
