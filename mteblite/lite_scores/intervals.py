"""Half-widths of the intervals around lite scores, from held-out residuals by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.validation.conformal import LEVEL, NONE, HalfWidth, half_width
from mteblite.validation.metrics import score_matrices
from mteblite.validation.targets import combine, target_weights

PROTOCOL = "family_lomo"


def interval_half_widths(
    predictions: pd.DataFrame,
    task_types: Mapping[str, str],
    variant: str,
    *,
    level: float = LEVEL,
    protocol: str = PROTOCOL,
) -> pd.DataFrame:
    """Return the half-width of every target of a suite.

    Args:
        predictions: held-out predictions, as `predict_protocol` returns them.
        task_types: type of every task of the suite.
        variant: the variant that lite scores are made with.
        level: coverage.
        protocol: whose folds are the families.

    Returns:
        One row per target (`macro`, `mean`, `type:<type>`, `task:<name>`): target, half_width
        (NaN with under 2 families), interval_method (`conformal_family`; `student_t` where the
        families are too few for the level; `none`), n_families, level.

    Too few models to predict any of them held out (two families of one) is no error: scores are
    still worth having, their intervals are unknown.

    Raises:
        ValueError: there are held-out predictions, but none of the variant.
    """
    chosen = (predictions["protocol"] == protocol) & (predictions["variant"] == variant)
    if len(predictions) and not chosen.any():
        raise ValueError(
            f"variant {variant!r} has no {protocol} predictions yet, without which its intervals "
            "are unknown: run `mteblite materialize` for the suite, which validates it"
        )
    tasks = sorted(task_types)
    held_out = score_matrices(predictions.loc[chosen], tasks).get(variant)
    rows: list[dict[str, object]] = []
    for target, weights in target_weights(tasks, task_types, with_types=True).items():
        width = _width(held_out, weights, level)
        rows.append(
            {
                "target": target,
                "half_width": width.value,
                "interval_method": width.method,
                "n_families": width.n_families,
                "level": level,
            }
        )
    return pd.DataFrame(rows)


def _width(
    held_out: tuple[np.ndarray, np.ndarray, np.ndarray] | None, weights: np.ndarray, level: float
) -> HalfWidth:
    """Half-width of one target from (predicted, actual, folds)."""
    if held_out is None:
        return HalfWidth(float("nan"), NONE, 0)
    predicted, actual, folds = held_out
    residuals = combine(predicted, weights) - combine(actual, weights)
    return half_width(residuals, folds, level)


def reference_scores(evidences: Sequence[TaskEvidence]) -> pd.DataFrame:
    """Return full scores of the models that entered the fits: model, task, main_score."""
    parts = [
        pd.DataFrame({"model": list(e.models), "task": e.task, "main_score": e.full_scores})
        for e in evidences
    ]
    return pd.concat(parts, ignore_index=True)


def with_reference_range(
    widths: pd.DataFrame, full_scores: pd.DataFrame, task_types: Mapping[str, str]
) -> pd.DataFrame:
    """Add reference_low and reference_high: the range of the reference models on each target.

    Args:
        widths: from `interval_half_widths`.
        full_scores: model, task, main_score of the reference models; a model that lacks a task of
            a target does not count there.
        task_types: type of every task of the suite.
    """
    tasks = sorted(task_types)
    matrix = full_scores.pivot(index="model", columns="task", values="main_score")
    values = matrix.reindex(columns=tasks).to_numpy(dtype=float)
    lows, highs = [], []
    weights = target_weights(tasks, task_types, with_types=True)
    for target in widths["target"]:
        scores = combine(values, weights[str(target)])
        scores = scores[np.isfinite(scores)]
        lows.append(float(scores.min()) if scores.size else float("nan"))
        highs.append(float(scores.max()) if scores.size else float("nan"))
    return widths.assign(reference_low=lows, reference_high=highs)
