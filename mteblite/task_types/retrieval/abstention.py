"""Normalized area under the abstention curve (nAUC), as in mteb/_evaluators/retrieval_metrics.py.

It measures how well a model's confidence separates its good queries from its bad ones (arXiv
2402.12997). The curve is the mean metric over the queries that remain when the least confident
ones are left out. The flat curve has the value 0, and the oracle's curve has the value 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

RATES = np.linspace(0, 1, 11)[:-1]

CONFIDENCES: dict[str, Callable[[np.ndarray], float]] = {
    "max": lambda scores: float(scores[0]),
    "std": lambda scores: float(np.std(scores)),
    "diff1": lambda scores: float(scores[0] - scores[1]) if len(scores) > 1 else 0.0,
}
"""A query's confidence from the scores of its documents, largest first."""


def confidence(rankings: Sequence[Sequence[float]], kind: str, depth: int) -> np.ndarray:
    """Return the confidence of each query; 0 without documents.

    Args:
        rankings: scores of each query's documents, in any order.
        kind: one of CONFIDENCES.
        depth: how many of the best documents are used (mteb's `top_k`).
    """
    best = [np.sort(np.asarray(scores, dtype=float))[::-1][:depth] for scores in rankings]
    return np.array([CONFIDENCES[kind](scores) if len(scores) else 0.0 for scores in best])


def normalized_area(confidences: np.ndarray, values: np.ndarray) -> float:
    """Return the normalized area under the abstention curve.

    Args:
        confidences: (n,) confidence of each query.
        values: (n,) metric of each query.

    Returns:
        At most 1; NaN where all queries have the same metric.
    """
    from scipy.integrate import trapezoid

    oracle = _curve(values, values)
    flat = oracle[0] * (RATES[-1] - RATES[0])
    best = trapezoid(oracle, RATES)
    if best == flat:
        return float("nan")
    return float((trapezoid(_curve(confidences, values), RATES) - flat) / (best - flat))


def _curve(confidences: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the mean metric at each rate; equally confident queries all have their mean."""
    order = np.argsort(confidences, stable=True)
    ordered = confidences[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, len(ordered)])
    kept = np.repeat(np.add.reduceat(values[order], starts) / sizes, sizes)
    return np.array([kept[min(round(r * len(kept)), len(kept) - 1) :].mean() for r in RATES])
