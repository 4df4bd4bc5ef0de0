"""Half-widths of the intervals of lite scores, from held-out residuals by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.suites.method_keys import INTERVALS_FROM
from mteblite.validation.conformal import LEVEL, NONE, HalfWidth, half_width
from mteblite.validation.metrics import score_matrices
from mteblite.validation.targets import combine, target_weights
from mteblite.validation.variants import without_draw

COLUMNS = ["target", "half_width", "interval_method", "n_families", "level"]


def interval_half_widths(
    predictions: pd.DataFrame,
    task_types: Mapping[str, str],
    variant: str,
    *,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Return the half-width of every target of a suite, over families and item draws.

    Args:
        predictions: held-out predictions, as `predict_protocol` returns them. There are none where
            families are too few for any fold; intervals are then unknown.
        task_types: type of every task of the suite.
        variant: the variant of the lite scores.
        level: coverage.

    Returns:
        One row per target (`macro`, `mean`, `type:<type>`, `task:<name>`): target, half_width
        (NaN with under 2 families), interval_method (`conformal_family`; `student_t` where the
        families are too few for the level; `none`), n_families, level.

    Raises:
        ValueError: there are held-out predictions, but none of the variant.
    """
    names = predictions["variant"].map(without_draw)
    chosen = (predictions["protocol"] == INTERVALS_FROM) & (names == variant)
    if len(predictions) and not chosen.any():
        raise ValueError(
            f"variant {variant!r} has no {INTERVALS_FROM} predictions yet, without which its "
            "intervals are unknown: run `mteblite materialize` for the suite, which validates it"
        )
    tasks = sorted(task_types)
    held_out = list(score_matrices(predictions.loc[chosen], tasks).values())
    rows: list[tuple[str, float, str, int, float]] = []
    for target, weights in target_weights(tasks, task_types, with_types=True).items():
        width = _width(held_out, weights, level)
        rows.append((target, width.value, width.method, width.n_families, level))
    return pd.DataFrame(rows, columns=COLUMNS)


def _width(
    held_out: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], weights: np.ndarray, level: float
) -> HalfWidth:
    """Return the half-width of one target from (predicted, actual, folds) of each item draw."""
    if not held_out:
        return HalfWidth(float("nan"), NONE, 0)
    residuals = [combine(p, weights) - combine(a, weights) for p, a, _ in held_out]
    return half_width(
        np.concatenate(residuals), np.concatenate([folds for _, _, folds in held_out]), level
    )


def reference_scores(evidences: Sequence[TaskEvidence]) -> pd.DataFrame:
    """Return the full scores of the models in the fits: model, task, main_score."""
    parts = [
        pd.DataFrame({"model": list(e.models), "task": e.task, "main_score": e.full_scores})
        for e in evidences
    ]
    return pd.concat(parts, ignore_index=True)


def with_reference_range(
    widths: pd.DataFrame, full_scores: pd.DataFrame, task_types: Mapping[str, str]
) -> pd.DataFrame:
    """Add reference_low and reference_high: the range of the reference models on each target.

    For a target, models that lack one of its tasks are left out. `full_scores` has the columns
    model, task and main_score.
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
