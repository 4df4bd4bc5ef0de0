"""Agreement of held-out predictions with full scores, per target and variant."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from mteblite.validation.agreement import (
    bias,
    kendall_tau,
    kendall_tau_resolvable,
    mae,
    minimum_detectable_difference,
    pearson,
    top1_regret,
    within_family_tau,
)
from mteblite.validation.conformal import held_out_coverage
from mteblite.validation.targets import combine, target_weights
from mteblite.validation.variants import without_draw

METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "kendall_tau": kendall_tau,
    "kendall_tau_resolvable": kendall_tau_resolvable,
    "pearson": pearson,
    "mae": mae,
    "bias": bias,
    "top1_regret": top1_regret,
    "mdad": minimum_detectable_difference,
}
"""Metrics of (predicted, actual) over models, beside `coverage_90`, which also needs families."""
SUITE_TARGETS = ("macro", "mean")
"""Targets over all tasks; with family folds they also have `within_family_tau`."""
FAMILY_FOLDS = frozenset({"family_lomo", "nested_family_lomo"})


def validation_metrics(predictions: pd.DataFrame, task_types: Mapping[str, str]) -> pd.DataFrame:
    """Return every metric for macro, mean and each task.

    A model counts for a target only with a prediction and a full score of each of the target's
    tasks. A metric is the mean over item draws, and `mae_draw_sd` the standard deviation of `mae`
    over them. `coverage_90` is the share of
    models inside 90 % intervals from the residuals of the other folds. `mdad` is the
    `minimum_detectable_difference`. Macro and mean also have `within_family_tau`.

    Returns:
        protocol, variant, target, metric, value (NaN = undefined), n_models; sorted.

    Raises:
        ValueError: a predicted task is not in the suite, or there is no task.
    """
    unknown = sorted(set(predictions["task"]) - set(task_types))
    if unknown:
        raise ValueError(f"predictions hold task {unknown[0]!r}, which is not in the suite")
    tasks = sorted(task_types)
    targets = target_weights(tasks, task_types)
    rows: list[tuple[str, str, str, str, float, int]] = []
    for protocol, part in predictions.groupby("protocol", sort=True):
        for name, (predicted, actual, folds) in score_matrices(part, tasks).items():
            for target, weights in targets.items():
                p, a, held_out = known_scores(predicted, actual, folds, weights)
                found = {metric: (compute(p, a), len(a)) for metric, compute in METRICS.items()}
                found["coverage_90"] = held_out_coverage(p - a, held_out)
                if target in SUITE_TARGETS and protocol in FAMILY_FOLDS:
                    found["within_family_tau"] = (within_family_tau(p, a, held_out), len(a))
                rows += [(str(protocol), name, target, m, v, n) for m, (v, n) in found.items()]
    return _average_draws(rows)


def known_scores(
    predicted: np.ndarray, actual: np.ndarray, folds: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return predicted and actual scores of a target, and folds, of the models that have both.

    Scores are (n_models, n_tasks), folds (n_models,), the target's task weights (n_tasks,).
    """
    p, a = combine(predicted, weights), combine(actual, weights)
    known = np.isfinite(p) & np.isfinite(a)
    return p[known], a[known], folds[known]


def score_matrices(
    part: pd.DataFrame, tasks: list[str]
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return by variant the predicted and actual scores (n_models, n_tasks) and models' folds.

    Rows of other tasks are left out.
    """
    part = part[part["task"].isin(tasks)]
    model, models = pd.factorize(part["model"], sort=True)
    variant, variants = pd.factorize(part["variant"], sort=True)
    task = pd.Index(tasks).get_indexer(pd.Index(part["task"]))
    shape = (len(variants), len(models), len(tasks))
    predicted, actual = np.full(shape, np.nan), np.full(shape, np.nan)
    predicted[variant, model, task] = part["predicted"].to_numpy(float)
    actual[variant, model, task] = part["actual"].to_numpy(float)
    folds = np.empty(len(models), dtype=object)
    folds[model] = part["fold"].to_numpy(dtype=object)
    return {str(name): (predicted[i], actual[i], folds) for i, name in enumerate(variants)}


def _average_draws(rows: list[tuple[str, str, str, str, float, int]]) -> pd.DataFrame:
    """Return one row per variant, the mean over its item draws, and the spread of their errors."""
    columns = ["protocol", "variant", "target", "metric", "value", "n_models"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["variant"] = frame["variant"].map(without_draw)
    grouped = frame.groupby(columns[:4], sort=True)
    means = grouped.agg(value=("value", "mean"), n_models=("n_models", "max")).reset_index()
    spread = grouped.agg(value=("value", "std"), n_models=("n_models", "max")).reset_index()
    spread = spread[(spread["metric"] == "mae") & spread["value"].notna()]
    found = pd.concat([means, spread.assign(metric="mae_draw_sd")], ignore_index=True)
    return found.sort_values(columns[:4], ignore_index=True)
