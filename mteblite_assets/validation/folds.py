"""Which models are held out together. A new protocol is a function and one entry in PROTOCOLS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from mteblite_assets.item_parameters.evidence import TaskEvidence


@dataclass(frozen=True)
class Fold:
    """Models left out of everything fitted, selected and calibrated, and then predicted.

    Attributes:
        name: the family or model.
        held_out: models that training must not see.
    """

    name: str
    held_out: frozenset[str]


def family_folds(families: dict[str, str]) -> list[Fold]:
    """Return one fold per family: the headline protocol.

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
    """Return one fold per model; its siblings stay in training, so this is an upper bound.

    Raises:
        ValueError: there is only one model.
    """
    if len(families) < 2:
        raise ValueError(f"leave-one-model-out needs at least 2 models, got {len(families)}")
    return [Fold(model, frozenset([model])) for model in sorted(families)]


PROTOCOLS: dict[str, Callable[[dict[str, str]], list[Fold]]] = {
    "family_lomo": family_folds,
    "model_lomo": model_folds,
}


def make_folds(protocol: str, families: dict[str, str]) -> list[Fold]:
    """Return the folds of a protocol over the models of a suite."""
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol {protocol!r} is unknown; allowed: {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol](families)


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
    """Return who trains and who is held out: protocol, fold, model, family, held_out."""
    families = family_by_model(evidences)
    rows = [
        (protocol, fold.name, model, families[model], model in fold.held_out)
        for fold in make_folds(protocol, families)
        for model in sorted(families)
    ]
    return pd.DataFrame(rows, columns=["protocol", "fold", "model", "family", "held_out"])
