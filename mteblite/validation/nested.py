"""Nested validation: the choice of the variant does not use the held-out family.

The best of several variants has too low an error on the folds that chose it. Here each outer fold
holds out a family, inner folds over the other families choose the variant with the least macro
error, and this variant predicts the held-out family (docs/methods.md, Nested choice).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from mteblite.calibrations.cross_fitting import inner_folds
from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.suites.task_types import shares
from mteblite.validation.folds import NESTED, Fold, family_by_model, make_folds
from mteblite.validation.lomo import (
    Choice,
    Settings,
    check_suite,
    ordered,
    parse_choices,
    predict_folds,
)
from mteblite.validation.metrics import score_matrices
from mteblite.validation.refit import TaskRefits
from mteblite.validation.targets import combine, macro_weights

CHOSEN = "chosen"
"""Variant name of nested predictions."""
INNER_MARK = "\x1f"
"""Separates an outer fold's name and an inner fold's number; it is in no family's name."""


def predict_nested(
    evidences: Sequence[TaskEvidence],
    variants: Sequence[Choice],
    settings: Settings,
    *,
    refits: dict[str, TaskRefits] | None = None,
    progress: Callable[[int, int], None] | None = None,
    name: str = CHOSEN,
    patience: float = 0.0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Predict every family by the variant that the other families choose; see `predict_protocol`.

    Variants are candidates, simplest first; of equally good ones the first is chosen. With
    `patience` above 0, the first variant is chosen that is worse than the best by at most this many
    standard errors of their difference over families, because with few families the least error is
    mostly chance.

    Returns:
        Predictions as of `predict_protocol` with protocol `nested_family_lomo` and variant `name`;
        and one row per fold: fold, variant (chosen), inner_mae, runner_up_mae.

    Raises:
        ValueError: see `predict_protocol`.
    """
    choices = parse_choices(variants)
    check_suite(evidences, choices, settings.k_by_task)
    families = family_by_model(evidences)
    outer = make_folds(NESTED, families)
    folds = [*outer, *(inner for fold in outer for inner in _inner(fold, families))]
    shared = {} if refits is None else refits
    frame = predict_folds(evidences, choices, folds, settings, shared, progress)
    types = types_of(evidences)
    is_inner = frame["fold"].str.contains(INNER_MARK, regex=False)
    # For all rows first, because assigning a column to a frame without rows would add rows.
    outer_of = frame["fold"].str.partition(INNER_MARK)[0]
    inner_rows = frame.assign(outer=outer_of)[is_inner]
    order = {str(choice): place for place, choice in enumerate(choices)}
    chosen = pd.DataFrame(
        [
            _choose(
                fold.name,
                inner_rows[inner_rows["outer"] == fold.name],
                types,
                order,
                families,
                patience,
            )
            for fold in outer
        ]
    )
    picked = frame[~is_inner].merge(chosen[["fold", "variant"]], on=["fold", "variant"])
    return ordered(picked.assign(variant=name, protocol=NESTED)), chosen


def _inner(fold: Fold, families: Mapping[str, str]) -> list[Fold]:
    """Return the inner folds of an outer one: those of cross-fitting, so that fits are shared."""
    models = sorted(families)
    train = np.array([fold.trains(model) for model in models])
    found = []
    of_model = [families[m] for m in models]
    for number, (fits, held_out) in enumerate(inner_folds(train, of_model)):
        predicted = frozenset(m for m, h in zip(models, held_out, strict=True) if h)
        hidden = frozenset(m for m, f in zip(models, fits, strict=True) if not f) - predicted
        found.append(Fold(f"{fold.name}{INNER_MARK}{number}", predicted, hidden))
    return found


def _choose(
    fold: str,
    rows: pd.DataFrame,
    types: Mapping[str, str],
    order: Mapping[str, int],
    families: Mapping[str, str],
    patience: float,
) -> dict[str, object]:
    """Return the variant with the least inner macro error, or a simpler one within `patience`."""
    errors = _errors(rows, types)
    means = {v: float(e.mean()) for v, e in errors.items() if len(e)}
    ranked = sorted(means, key=lambda v: (round(means[v], 12), order[v]))
    if not ranked:
        first = min(order, key=lambda v: order[v])
        return {"fold": fold, "variant": first, "inner_mae": np.nan, "runner_up_mae": np.nan}
    best = chosen = ranked[0]
    for variant in sorted(ranked, key=lambda v: order[v]) if patience > 0 else ():
        gap = (errors[variant] - errors[best]).dropna()
        means_of_families = gap.groupby([families[str(m)] for m in gap.index]).mean()
        values = means_of_families.to_numpy(dtype=float)
        if len(values) > 1 and values.mean() <= patience * values.std(ddof=1) / len(values) ** 0.5:
            chosen = variant
            break
    others = [v for v in ranked if v != chosen]
    return {
        "fold": fold,
        "variant": chosen,
        "inner_mae": means[chosen],
        "runner_up_mae": means[others[0]] if others else float("nan"),
    }


def _errors(rows: pd.DataFrame, types: Mapping[str, str]) -> dict[str, pd.Series]:
    """Return the absolute inner macro error of each model, by variant.

    Where no model has every task, the error is the mean over each model's tasks.
    """
    if rows.empty:
        return {}
    tasks = sorted(set(rows["task"]))
    models = sorted(set(rows["model"]))
    weights = macro_weights(tasks, types)
    found: dict[str, pd.Series] = {}
    for variant, (predicted, actual, _) in score_matrices(rows, tasks).items():
        error = np.abs(combine(predicted, weights) - combine(actual, weights))
        if not np.isfinite(error).any():
            gap = np.abs(predicted - actual)
            mass = np.isfinite(gap) * shares(tasks, types)
            total = (np.where(np.isfinite(gap), gap, 0.0) * mass).sum(axis=1)
            with np.errstate(invalid="ignore"):
                error = total / mass.sum(axis=1)
        found[variant] = pd.Series(error, index=models).dropna()
    return found
