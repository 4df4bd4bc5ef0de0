"""Fit the items of one task: abilities from full scores, then each item's response curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mteblite.item_parameters.abilities import Abilities, has_spread, standardize
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.linear_gaussian import LINEAR_GAUSSIAN
from mteblite.item_parameters.response_model import ItemParameters, ResponseModel
from mteblite.item_parameters.two_pl import TWO_PL

RESPONSE_MODELS: dict[str, ResponseModel] = {m.name: m for m in (LINEAR_GAUSSIAN, TWO_PL)}
NEEDS_UNIT_RANGE = frozenset({"two_pl"})
"""Response models of outcomes in [0, 1]."""
BINARY_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ItemFit:
    """Fitted items of a task.

    Attributes:
        response_model: name in RESPONSE_MODELS.
        item_ids: ids in the order of the parameters.
        models: the training models.
        parameters: arrays (n_items,).
        ability: abilities of `models`, with the mean and sd that standardised them.
    """

    response_model: str
    item_ids: tuple[str, ...]
    models: tuple[str, ...]
    parameters: ItemParameters
    ability: Abilities

    @property
    def usable(self) -> bool:
        """False where abilities have no spread, so that item parameters have no information."""
        return self.ability.usable

    @property
    def item_parameters(self) -> pd.DataFrame:
        """One row per item: item_id, response_model, slope, intercept, residual_sd, n_models."""
        return pd.DataFrame(
            {
                "item_id": list(self.item_ids),
                "response_model": self.response_model,
                "slope": self.parameters.slope,
                "intercept": self.parameters.intercept,
                "residual_sd": self.parameters.residual_sd,
                "n_models": self.parameters.n_models,
            }
        )

    @property
    def abilities(self) -> pd.DataFrame:
        """One row per training model: model, theta, theta_mean, theta_sd."""
        return pd.DataFrame(
            {
                "model": list(self.models),
                "theta": self.ability.theta,
                "theta_mean": self.ability.mean,
                "theta_sd": self.ability.sd,
            }
        )


def fit_items(evidence: TaskEvidence, response_model: str = "auto") -> ItemFit:
    """Fit every pool item on the models that have a full score and outcomes.

    Args:
        evidence: the training models; those without a full score or outcomes are left out.
        response_model: a name in RESPONSE_MODELS, or `auto`: 2PL where every observed outcome is
            0 or 1, else linear-Gaussian.

    Raises:
        ValueError: no model has both a full score and outcomes, the response model is unknown,
            or it needs outcomes in [0, 1] and some are outside.
    """
    reference = restrict(evidence, usable_models(evidence))
    name = _choose(reference, response_model)
    ability = standardize(reference.full_scores)
    parameters = RESPONSE_MODELS[name].fit(ability.theta, reference.outcomes)
    return ItemFit(
        response_model=name,
        item_ids=evidence.of_items("item_ids", lambda: tuple(evidence.items["item_id"].tolist())),
        models=reference.models,
        parameters=parameters,
        ability=ability,
    )


def fit_from_tables(item_parameters: pd.DataFrame, abilities: pd.DataFrame) -> ItemFit:
    """Return a fit from its stored rows, `ItemFit.item_parameters` and `ItemFit.abilities`.

    Raises:
        ValueError: a table is empty, or the items name several response models.
    """
    items = item_parameters.sort_values("item_id")
    models = abilities.sort_values("model")
    names = sorted(set(items["response_model"]))
    if models.empty or len(names) != 1:
        raise ValueError(
            f"item parameters of {len(models)} models name {len(names)} response models; expected "
            "at least 1 model and exactly 1 response model: materialize item_parameters again"
        )
    mean, sd = float(models["theta_mean"].iloc[0]), float(models["theta_sd"].iloc[0])
    theta = models["theta"].to_numpy(dtype=float)
    slope, intercept, residual_sd = (
        items[c].to_numpy(dtype=float) for c in ("slope", "intercept", "residual_sd")
    )
    return ItemFit(
        response_model=str(names[0]),
        item_ids=tuple(items["item_id"]),
        models=tuple(models["model"]),
        parameters=ItemParameters(
            slope, intercept, residual_sd, items["n_models"].to_numpy(dtype=int)
        ),
        ability=Abilities(theta, mean, sd, usable=has_spread(len(theta), sd)),
    )


def usable_models(evidence: TaskEvidence) -> np.ndarray:
    """Return the mask of models with a finite full score and at least one outcome."""
    return np.isfinite(evidence.full_scores) & np.isfinite(evidence.outcomes).any(axis=1)


def restrict(evidence: TaskEvidence, keep: np.ndarray) -> TaskEvidence:
    """Return the evidence of the models in the mask.

    Raises:
        ValueError: the mask is empty.
    """
    if not keep.any():
        raise ValueError(
            f"{evidence.task}: none of {len(keep)} models has both a full score and outcomes; "
            "add reference scores or materialize the outcomes of the reference models"
        )
    return evidence if keep.all() else evidence.only_models(keep)


def is_binary(outcomes: np.ndarray) -> bool:
    """Return whether every observed outcome is 0 or 1, and at least one is observed."""
    seen = outcomes[np.isfinite(outcomes)]
    if seen.size == 0:
        return False
    return bool((np.minimum(np.abs(seen), np.abs(seen - 1.0)) <= BINARY_TOLERANCE).all())


def _in_unit_range(outcomes: np.ndarray) -> bool:
    seen = outcomes[np.isfinite(outcomes)]
    inside = (seen >= -BINARY_TOLERANCE) & (seen <= 1.0 + BINARY_TOLERANCE)
    return bool(inside.all())


def _choose(evidence: TaskEvidence, response_model: str) -> str:
    """Return the response model for `auto`; check that it is known and fits the outcomes."""
    if response_model == "auto":
        return "two_pl" if is_binary(evidence.outcomes) else "linear_gaussian"
    if response_model not in RESPONSE_MODELS:
        allowed = ", ".join(["auto", *RESPONSE_MODELS])
        raise ValueError(f"response model {response_model!r} is unknown; allowed: {allowed}")
    if response_model in NEEDS_UNIT_RANGE and not _in_unit_range(evidence.outcomes):
        low, high = np.nanmin(evidence.outcomes), np.nanmax(evidence.outcomes)
        raise ValueError(
            f"{evidence.task}: {response_model} needs outcomes in [0, 1], found "
            f"[{low:.3g}, {high:.3g}]; use linear_gaussian"
        )
    return response_model
