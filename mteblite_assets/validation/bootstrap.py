"""Intervals of validation metrics, and whether two variants differ: families are redrawn.

Models of a family err together, so families are the independent units (cluster bootstrap). Variants
are compared on the same draws (paired), because they share models and mostly items.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mteblite_assets.seeds import generator
from mteblite_assets.validation.agreement import kendall_tau, mae
from mteblite_assets.validation.metrics import score_matrices
from mteblite_assets.validation.targets import combine, target_weights

DRAWS = 2000
LEVEL = 0.95
BATCH = 250
"""Draws at a time; bounds memory at BATCH * n_models^2 numbers."""


def family_draws(folds: np.ndarray, draws: int = DRAWS, seed: int = 0) -> np.ndarray:
    """Return how often each model counts in each draw (draws, n_models); families stay whole."""
    names, code = np.unique(np.asarray(folds, dtype=str), return_inverse=True)
    rng = generator(seed, "bootstrap", len(names))
    picked = rng.integers(len(names), size=(draws, len(names)))
    counts = np.zeros((draws, len(names)))
    np.add.at(counts, (np.arange(draws)[:, None], picked), 1.0)
    return counts[:, code]


def drawn_mae(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean absolute error of each draw (draws,)."""
    return np.asarray(counts @ np.abs(predicted - actual) / counts.sum(axis=1))


def drawn_tau(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b of each draw (draws,); copies of a model are no pair.

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


def bootstrap_intervals(
    predictions: pd.DataFrame,
    task_types: Mapping[str, str],
    *,
    targets: tuple[str, ...] = ("macro", "mean"),
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Return percentile intervals of MAE and tau-b by protocol, variant and target.

    Args:
        predictions: protocol, variant, fold, model, task, predicted, actual.
        task_types: type of every task of the suite.
        targets: which targets.
        draws: bootstrap draws.
        seed: of the draws.

    Returns:
        protocol, variant, target, metric, value, lower, upper, n_families. NaN ends with under 3
        families.
    """
    tasks = sorted(task_types)
    weights = target_weights(tasks, task_types)
    rows: list[tuple[str, str, str, str, float, float, float, int]] = []
    for protocol, part in predictions.groupby("protocol", sort=True):
        for name, matrices in score_matrices(part, tasks).items():
            for target in targets:
                p, a, folds = _known(*matrices, weights[target])
                n = len(set(folds))
                counts = family_draws(folds, draws, seed) if n else np.empty((0, 0))
                for metric, point, drawn in (
                    ("mae", mae, drawn_mae),
                    ("kendall_tau", kendall_tau, drawn_tau),
                ):
                    ends = _ends(drawn(p, a, counts)) if n >= 3 else (float("nan"),) * 2
                    rows.append((str(protocol), name, target, metric, point(p, a), *ends, n))
    columns = ["protocol", "variant", "target", "metric", "value", "lower", "upper", "n_families"]
    return pd.DataFrame(rows, columns=columns)


def paired_difference(
    predictions: pd.DataFrame,
    task_types: Mapping[str, str],
    first: str,
    second: str,
    *,
    target: str = "macro",
    draws: int = DRAWS,
    seed: int = 0,
) -> dict[str, float]:
    """Return the difference in MAE, first minus second, on the models that both predict.

    Args:
        predictions: of one protocol.
        task_types: type of every task of the suite.
        first: a variant.
        second: another.
        target: `macro`, `mean` or `task:<name>`.
        draws: bootstrap draws.
        seed: of the draws.

    Returns:
        difference, lower, upper (95 %), and share_better: in how many draws the first errs less.

    Raises:
        ValueError: a variant has no predictions.
    """
    tasks = sorted(task_types)
    weights = target_weights(tasks, task_types)[target]
    chosen = predictions[predictions["variant"].isin([first, second])]
    models = [set(chosen.loc[chosen["variant"] == v, "model"]) for v in (first, second)]
    if not all(models):
        raise ValueError(f"no predictions of variant {(first if not models[0] else second)!r}")
    chosen = chosen[chosen["model"].isin(models[0] & models[1])]
    matrices = score_matrices(chosen, tasks)
    error = [np.abs(combine(m[0] - m[1], weights)) for m in (matrices[first], matrices[second])]
    known = np.isfinite(error[0]) & np.isfinite(error[1])
    gap = (error[0] - error[1])[known]
    counts = family_draws(matrices[first][2][known], draws, seed)
    drawn = counts @ gap / counts.sum(axis=1)
    low, high = _ends(drawn)
    better = float((drawn < 0).mean())
    return {
        "difference": float(gap.mean()), "lower": low, "upper": high, "share_better": better,
    }  # fmt: skip


def _known(
    predicted: np.ndarray, actual: np.ndarray, folds: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, truth and families of one target, of the models that have both."""
    p, a = combine(predicted, weights), combine(actual, weights)
    known = np.isfinite(p) & np.isfinite(a)
    return p[known], a[known], folds[known]


def _ends(drawn: np.ndarray) -> tuple[float, float]:
    """Percentiles of the draws."""
    if not np.isfinite(drawn).any():
        return float("nan"), float("nan")
    low, high = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
