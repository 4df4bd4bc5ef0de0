"""Folds of the validation protocols. A new protocol is a function and one entry in PROTOCOLS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.suites.task_types import shares

MIN_FRONTIER_FAMILIES = 5
LOW_SHARE = 0.6
TOP_SHARE = 0.2


@dataclass(frozen=True)
class Fold:
    """Models that are held out of fitting, selection and calibration, and then predicted.

    Attributes:
        name: the family or model.
        held_out: models that are not in the training set and are predicted.
        excluded: models that are neither in the training set nor predicted.
        hides_better: public models better than all training models are hidden, too.
    """

    name: str
    held_out: frozenset[str]
    excluded: frozenset[str] = frozenset()
    hides_better: bool = False

    def trains(self, model: str) -> bool:
        """Return whether a model is in the training set."""
        return model not in self.held_out and model not in self.excluded


def family_folds(families: dict[str, str]) -> list[Fold]:
    """Return one fold per family, for the main protocol.

    Raises:
        ValueError: there is only one family.
    """
    names = sorted(set(families.values()))
    if len(names) < 2:
        raise ValueError(
            f"leave-one-family-out needs at least 2 families, got {len(names)} "
            f"({', '.join(names) or 'none'}): add reference models of another family"
        )
    return [Fold(name, frozenset(m for m, f in families.items() if f == name)) for name in names]


def model_folds(families: dict[str, str]) -> list[Fold]:
    """Return one fold per model; its family stays in training, so results are an upper bound.

    Raises:
        ValueError: there is only one model.
    """
    if len(families) < 2:
        raise ValueError(f"leave-one-model-out needs at least 2 models, got {len(families)}")
    return [Fold(model, frozenset([model])) for model in sorted(families)]


def frontier_folds(families: dict[str, str], scores: Mapping[str, float]) -> list[Fold]:
    """Return the one fold that predicts models better than the training models.

    Families are ranked by their models' mean score. The lower 60 % train, the best 20 % are
    predicted, and the others are excluded (docs/methods.md, Protocols). A model without a mean full
    score ranks lowest. Public scores of better models are hidden, because with them the fold would
    not extrapolate.

    Raises:
        ValueError: there are fewer than 5 families.
    """
    names = sorted(set(families.values()))
    if len(names) < MIN_FRONTIER_FAMILIES:
        raise ValueError(
            f"the frontier fold needs at least {MIN_FRONTIER_FAMILIES} families, got {len(names)}: "
            "add reference models, or leave the protocol out"
        )
    known: dict[str, list[float]] = {name: [] for name in names}
    for model, family in families.items():
        known[family].append(scores.get(model, float("-inf")))
    rank = sorted(names, key=lambda name: (sum(known[name]) / len(known[name]), name))
    top = set(rank[len(rank) - max(1, round(TOP_SHARE * len(rank))) :])
    low = set(rank[: round(LOW_SHARE * len(rank))])
    held_out = frozenset(m for m, f in families.items() if f in top)
    middle = frozenset(m for m, f in families.items() if f not in top and f not in low)
    return [Fold("frontier", held_out, middle, hides_better=True)]


FRONTIER = "frontier"
NESTED = "nested_family_lomo"
PROTOCOLS: dict[str, Callable[[dict[str, str], Mapping[str, float]], list[Fold]]] = {
    "family_lomo": lambda families, _: family_folds(families),
    "model_lomo": lambda families, _: model_folds(families),
    NESTED: lambda families, _: family_folds(families),
    FRONTIER: frontier_folds,
}


def make_folds(
    protocol: str, families: dict[str, str], scores: Mapping[str, float] | None = None
) -> list[Fold]:
    """Return the folds of a protocol over the models of a suite; only `frontier` needs `scores`.

    Raises:
        ValueError: the protocol is unknown, or there are too few families or models.
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol {protocol!r} is unknown; allowed: {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol](families, scores or {})


def mean_scores(evidences: Sequence[TaskEvidence]) -> dict[str, float]:
    """Return each model's mean full score over its tasks, each task standardised first.

    Parts of an aggregate count as one task.
    """
    sums: dict[str, float] = {}
    masses: dict[str, float] = {}
    weights = shares([e.task for e in evidences], types_of(evidences)).tolist()
    for evidence, weight in zip(evidences, weights, strict=True):
        known = np.isfinite(evidence.full_scores)
        if not known.any():
            continue
        sd = float(evidence.full_scores[known].std()) or 1.0
        standard = (evidence.full_scores - evidence.full_scores[known].mean()) / sd
        for place in np.flatnonzero(known):
            model = evidence.models[place]
            sums[model] = sums.get(model, 0.0) + weight * float(standard[place])
            masses[model] = masses.get(model, 0.0) + weight
    return {model: total / masses[model] for model, total in sums.items()}


def family_by_model(evidences: Sequence[TaskEvidence]) -> dict[str, str]:
    """Return the family of every model of a suite.

    Raises:
        ValueError: a model is in two families.
    """
    families: dict[str, str] = {}
    for evidence in evidences:
        for model, family in zip(evidence.models, evidence.families, strict=True):
            if families.setdefault(model, family) != family:
                raise ValueError(
                    f"model {model!r} is in family {families[model]!r} and, for "
                    f"{evidence.task}, in {family!r}: a model has one family"
                )
    return families


def fold_members(evidences: Sequence[TaskEvidence], protocol: str) -> pd.DataFrame:
    """Return the members of each fold: protocol, fold, model, family, held_out.

    Excluded models of a fold have no row.
    """
    families = family_by_model(evidences)
    rows = [
        (protocol, fold.name, model, families[model], model in fold.held_out)
        for fold in make_folds(protocol, families, mean_scores(evidences))
        for model in sorted(families)
        if model not in fold.excluded
    ]
    return pd.DataFrame(rows, columns=["protocol", "fold", "model", "family", "held_out"])
