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
"""Draws at a time; memory is at most BATCH * n_models^2 / 2 numbers."""
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
    """Return the mean absolute error of each draw (draws,); arguments as in `drawn_tau`."""
    error = np.abs(np.atleast_2d(predicted) - actual).mean(axis=0)
    return np.asarray(counts @ error / counts.sum(axis=1))


def drawn_bias(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean error of each draw (draws,); arguments as in `drawn_tau`."""
    error = (np.atleast_2d(predicted) - actual).mean(axis=0)
    return np.asarray(counts @ error / counts.sum(axis=1))


def drawn_tau(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return Kendall's tau-b of each draw; two copies of a model are not a pair.

    Args:
        predicted: (n_models,), or (n_item_draws, n_models) for the mean over item draws.
        actual: (n_models,).
        counts: (draws, n_models), see `family_draws`.

    Returns:
        (draws,); NaN where a draw has no pair that differs on both sides.
    """
    a, p = _signs(actual), _signs(predicted)
    return _over_pairs(
        counts,
        lambda pairs: (
            pairs @ (a * p).T,
            np.sqrt((pairs @ np.abs(a).T) * (pairs @ np.abs(p).T)),
        ),
    )


def drawn_resolvable(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return `kendall_tau_resolvable` of each draw (draws,); arguments as in `drawn_tau`.

    NaN without resolvable pairs.
    """
    first, second = np.triu_indices(len(actual), 1)
    far = (np.abs(actual[first] - actual[second]) >= RESOLVABLE_GAP - GUARD).astype(float)[None]
    right = (_signs(actual) * _signs(predicted) * far).mean(axis=0, keepdims=True)
    return _over_pairs(counts, lambda pairs: (pairs @ right.T, pairs @ far.T))


def _signs(scores: np.ndarray) -> np.ndarray:
    """Return the sign of each pair's difference (n, n_pairs) of scores (n, n_models)."""
    rows = np.atleast_2d(scores)
    first, second = np.triu_indices(rows.shape[1], 1)
    return np.sign(rows[:, first] - rows[:, second])


def _over_pairs(
    counts: np.ndarray, parts: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Return a ratio of sums over pairs of models, by draw and averaged over item draws (draws,).

    `parts` returns numerators and denominators (draws, n_item_draws) from the number of copies of
    each pair (draws, n_pairs).
    """
    first, second = np.triu_indices(counts.shape[1], 1)
    found = []
    for start in range(0, len(counts), BATCH):
        w = counts[start : start + BATCH]
        both, size = parts(w[:, first] * w[:, second])
        ratio = np.where(size > 0, both / np.where(size > 0, size, 1.0), np.nan)
        found.append(ratio.mean(axis=1))
    return np.concatenate(found)


def drawn_pearson(predicted: np.ndarray, actual: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the correlation of each draw (draws,); arguments as in `drawn_tau`.

    NaN where a side is constant.
    """
    mass = counts / counts.sum(axis=1, keepdims=True)
    # Centred first, against cancellation of the products of large means.
    rows = np.atleast_2d(predicted)
    p, a = (rows - rows.mean(axis=1, keepdims=True)).T, (actual - actual.mean())[:, None]
    p_mean, a_mean = mass @ p, mass @ a
    covariance = mass @ (p * a) - p_mean * a_mean
    size = np.sqrt(np.maximum(mass @ p**2 - p_mean**2, 0) * np.maximum(mass @ a**2 - a_mean**2, 0))
    ratio = np.where(size > 1e-12, covariance / np.where(size > 1e-12, size, 1.0), np.nan)
    return np.asarray(ratio.mean(axis=1))


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

    Macro and mean have `DRAWS` draws, single tasks `TASK_DRAWS`. The metric of a random baseline is
    the mean over its item draws, in every draw of families, too.

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
    """Return the ends of each metric; each draw is first averaged over item draws."""
    same: dict[tuple[bytes, tuple[str, ...]], list[Scores]] = {}
    for scores in known:
        families = tuple(scores[2].tolist())
        if len(set(families)) >= MIN_FAMILIES:
            same.setdefault((scores[1].tobytes(), families), []).append(scores)
    if not same:
        return dict.fromkeys(DRAWN, NAN_ENDS)
    groups = list(same.values())  # more than one where a prediction is undefined in some draws
    counts = [family_draws(group[0][2], draws) for group in groups]
    found = {}
    for name, drawn in DRAWN.items():
        values = [
            drawn(np.stack([p for p, _, _ in group]), group[0][1], count)
            for group, count in zip(groups, counts, strict=True)
        ]
        found[name] = _ends(np.average(values, axis=0, weights=[len(group) for group in groups]))
    return found


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
