"""Cluster bootstrap over families: intervals of validation metrics and of their differences.

Errors of the models of a family are correlated, so families are the independent units. Variants are
compared on the same draws (paired), because they share models and most items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from mteblite.seeds import generator
from mteblite.validation.agreement import GUARD, RESOLVABLE_GAP, kendall_tau, mae
from mteblite.validation.metrics import known_scores, score_matrices
from mteblite.validation.targets import target_weights
from mteblite.validation.variants import without_draw

DRAWS = 2000
TASK_DRAWS = 500
"""Fewer draws for single tasks, because a suite has dozens of them."""
MIN_FAMILIES = 3
LEVEL = 0.95
BATCH = 250
"""Draws at a time; memory is at most BATCH * n_models^2 numbers."""
NAN_ENDS = (float("nan"), float("nan"))

Scores = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Predicted scores, actual scores and families of some models."""


def family_draws(folds: np.ndarray, draws: int = DRAWS) -> np.ndarray:
    """Return the count of each model in each draw (draws, n_models), equal within a family."""
    names, code = np.unique(np.asarray(folds, dtype=str), return_inverse=True)
    rng = generator(0, "bootstrap", len(names))
    picked = rng.integers(len(names), size=(draws, len(names)))
    counts = np.zeros((draws, len(names)))
    np.add.at(counts, (np.arange(draws)[:, None], picked), 1.0)
    return counts[:, code]


def drawn_mae(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean absolute error of each draw (draws,)."""
    return np.asarray(counts @ np.abs(predicted - actual) / counts.sum(axis=1))


def drawn_tau(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b of each draw (draws,); two copies of a model are not a pair.

    NaN where a draw has no pair that differs on both sides.
    """
    a = np.sign(np.subtract.outer(actual, actual))
    p = np.sign(np.subtract.outer(predicted, predicted))
    parts = []
    for start in range(0, len(counts), BATCH):
        w = counts[start : start + BATCH]
        both = ((w @ (a * p)) * w).sum(axis=1)
        size = np.sqrt(((w @ np.abs(a)) * w).sum(axis=1) * ((w @ np.abs(p)) * w).sum(axis=1))
        parts.append(np.where(size > 0, both / np.where(size > 0, size, 1.0), np.nan))
    return np.concatenate(parts)


def drawn_bias(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean error of each draw (draws,)."""
    return np.asarray(counts @ (predicted - actual) / counts.sum(axis=1))


def drawn_resolvable(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return `kendall_tau_resolvable` of each draw (draws,); NaN without resolvable pairs."""
    gap = np.subtract.outer(actual, actual)
    far = (np.abs(gap) >= RESOLVABLE_GAP - GUARD).astype(float)
    right = np.sign(gap) * np.sign(np.subtract.outer(predicted, predicted)) * far
    total = ((counts @ far) * counts).sum(axis=1)
    both = ((counts @ right) * counts).sum(axis=1)
    return np.where(total > 0, both / np.where(total > 0, total, 1.0), np.nan)


def drawn_pearson(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the correlation of each draw (draws,); NaN where a side is constant."""
    mass = counts / counts.sum(axis=1, keepdims=True)
    # Centred first, against cancellation of the products of large means.
    p, a = predicted - predicted.mean(), actual - actual.mean()
    p_mean, a_mean = mass @ p, mass @ a
    covariance = mass @ (p * a) - p_mean * a_mean
    size = np.sqrt(np.maximum(mass @ p**2 - p_mean**2, 0) * np.maximum(mass @ a**2 - a_mean**2, 0))
    return np.where(size > 1e-12, covariance / np.where(size > 1e-12, size, 1.0), np.nan)


def drawn_mean(values: np.ndarray, clusters: np.ndarray) -> tuple[float, float, float, np.ndarray]:
    """Return the mean of (n,) values, the ends of its interval over redrawn clusters, the draws.

    The ends are NaN with under MIN_FAMILIES clusters.
    """
    counts = family_draws(clusters)
    drawn = counts @ values / counts.sum(axis=1)
    few = len(set(clusters.tolist())) < MIN_FAMILIES
    low, high = NAN_ENDS if few else _ends(drawn)
    return float(values.mean()), low, high, drawn


DRAWN: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "mae": drawn_mae,
    "bias": drawn_bias,
    "pearson": drawn_pearson,
    "kendall_tau": drawn_tau,
    "kendall_tau_resolvable": drawn_resolvable,
}
"""Metrics whose draws are cheap enough for every target."""


def drawn_intervals(
    predictions: pd.DataFrame, task_types: Mapping[str, str], families: Mapping[str, str]
) -> pd.DataFrame:
    """Return percentile intervals of every metric in DRAWN, by protocol, variant and target.

    Macro and mean have `DRAWS` draws, single tasks `TASK_DRAWS`. Each draw redraws families and
    takes one of the variant's item draws, so that the interval says where the metric of one
    selection lies, not that of a mean over selections.

    Returns:
        protocol, variant, target, metric, lower, upper; NaN with under MIN_FAMILIES families.
    """
    tasks = sorted(task_types)
    weights = target_weights(tasks, task_types)
    rows: list[tuple[str, str, str, str, float, float]] = []
    for protocol, part in predictions.groupby("protocol", sort=True):
        clusters = np.array([families[m] for m in sorted(set(part["model"]))], dtype=object)
        same: dict[str, list[Scores]] = {}
        for name, matrices in score_matrices(part, tasks).items():
            same.setdefault(without_draw(name), []).append(matrices)
        for name, group in same.items():
            for target, w in weights.items():
                draws = TASK_DRAWS if target.startswith("task:") else DRAWS
                known = [known_scores(p, a, clusters, w) for p, a, _ in group]
                for metric, ends in _metric_ends(known, draws).items():
                    rows.append((str(protocol), name, target, metric, *ends))
    return pd.DataFrame(rows, columns=["protocol", "variant", "target", "metric", "lower", "upper"])


def _metric_ends(known: Sequence[Scores], draws: int) -> dict[str, tuple[float, float]]:
    """Return the ends of each metric; `known` are the scores of each item draw."""
    usable = [k for k in known if len(set(k[2].tolist())) >= MIN_FAMILIES]
    if not usable:
        return dict.fromkeys(DRAWN, NAN_ENDS)
    # Redrawn families are independent of one another, so every item draw takes a part of them.
    counts = [family_draws(k[2], draws)[i :: len(usable)] for i, k in enumerate(usable)]
    return {
        name: _ends(
            np.concatenate([drawn(p, a, c) for (p, a, _), c in zip(usable, counts, strict=True)])
        )
        for name, drawn in DRAWN.items()
    }


def bootstrap_intervals(
    predictions: pd.DataFrame,
    task_types: Mapping[str, str],
    *,
    targets: tuple[str, ...] = ("macro", "mean"),
    draws: int = DRAWS,
) -> pd.DataFrame:
    """Return percentile intervals of MAE and tau-b by protocol, variant and target.

    Returns:
        protocol, variant, target, metric, value, lower, upper, n_families. The ends are NaN with
        under MIN_FAMILIES families.
    """
    tasks = sorted(task_types)
    weights = target_weights(tasks, task_types)
    rows: list[tuple[str, str, str, str, float, float, float, int]] = []
    for protocol, part in predictions.groupby("protocol", sort=True):
        for name, matrices in score_matrices(part, tasks).items():
            for target in targets:
                p, a, folds = known_scores(*matrices, weights[target])
                n = len(set(folds))
                counts = family_draws(folds, draws) if n else np.empty((0, 0))
                for metric, point, drawn in (
                    ("mae", mae, drawn_mae),
                    ("kendall_tau", kendall_tau, drawn_tau),
                ):
                    ends = _ends(drawn(p, a, counts)) if n >= MIN_FAMILIES else NAN_ENDS
                    rows.append((str(protocol), name, target, metric, point(p, a), *ends, n))
    columns = ["protocol", "variant", "target", "metric", "value", "lower", "upper", "n_families"]
    return pd.DataFrame(rows, columns=columns)


def _ends(drawn: np.ndarray) -> tuple[float, float]:
    """Return the percentile interval of the draws."""
    if not np.isfinite(drawn).any():
        return NAN_ENDS
    low, high = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
