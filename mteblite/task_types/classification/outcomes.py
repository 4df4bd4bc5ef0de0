"""Outcomes of Classification: the share of mteb's classifiers that label a text correctly.

mteb fits a logistic regression on each of `n_experiments` small draws of train rows and averages
their scores (mteb/abstasks/classification.py). All of them label the same test rows, so the mean
outcome is the mean accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from mteblite.outcomes.cells import align, cells_of, mean_of_cells
from mteblite.outcomes.pool_score import PoolScore
from mteblite.pools.pool import Pool

METRICS = (
    "accuracy",
    "f1",
    "f1_weighted",
    "precision",
    "precision_weighted",
    "recall",
    "recall_weighted",
    "ap",
    "ap_weighted",
)


def score_pool(
    pool: Pool,
    vectors: np.ndarray,
    *,
    similarity: str = "cosine",
) -> PoolScore:
    """Return the share of classifiers that are right, in [0, 1], and the score.

    Args:
        pool: the pool.
        vectors: (n_texts, dim).
        similarity: not used by this type.
    """
    names = pool.metric_names
    test = align(pool.frames["test"], pool.items)
    codes = test["code"].to_numpy()
    outcomes = np.empty(len(test))
    values: dict[str, list[float]] = {name: [] for name in names}
    for rows in cells_of(pool.items):
        cell = pool.items.iloc[rows[0]]
        predictions = _predict(
            _train_rows(pool, cell), vectors, vectors[test["text_row"].to_numpy()[rows]], pool.meta
        )
        outcomes[rows] = np.mean(predictions == codes[rows], axis=0)
        for name in names:
            values[name].append(_mean_metric(name, codes[rows], predictions))
    means = {name: mean_of_cells(scores) for name, scores in values.items()}
    return PoolScore.of(pool, outcomes, means)


def _train_rows(pool: Pool, cell: pd.Series) -> pd.DataFrame:
    train = pool.frames["train"]
    here = (train["split"] == cell["split"]) & (train["hf_subset"] == cell["hf_subset"])
    return train[here.to_numpy()]


def _predict(
    train: pd.DataFrame, vectors: np.ndarray, test: np.ndarray, meta: dict[str, Any]
) -> np.ndarray:
    """Return the (n_experiments, n_test) predicted codes."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    predictions = []
    with warnings.catch_warnings():
        # mteb stops after 100 iterations whatever the scale of the vectors; so do we
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _, drawn in train.groupby("experiment", sort=True):
            classifier = LogisticRegression(
                max_iter=int(meta["protocol"].get("max_iter", 100)),
                random_state=int(meta["protocol"].get("seed", 42)),
            )
            classifier.fit(vectors[drawn["text_row"].to_numpy()], drawn["code"].to_numpy())
            predictions.append(classifier.predict(test))
    return np.stack(predictions)


def _mean_metric(name: str, codes: np.ndarray, predictions: np.ndarray) -> float:
    if name == "accuracy":
        return float(np.mean([np.mean(predicted == codes) for predicted in predictions]))
    function = _function(name)
    if name.startswith("ap") and len(np.unique(codes)) != 2:
        return float("nan")
    return float(np.mean([function(codes, predicted) for predicted in predictions]))


def _function(name: str) -> Callable[[np.ndarray, np.ndarray], float]:
    from sklearn import metrics

    base, _, average = name.partition("_")
    functions = {
        "f1": metrics.f1_score,
        "precision": metrics.precision_score,
        "recall": metrics.recall_score,
    }
    if base == "ap":
        return lambda codes, predicted: float(
            metrics.average_precision_score(codes == codes.max(), predicted == codes.max())
        )
    return lambda codes, predicted: float(
        functions[base](codes, predicted, average=average or "macro", zero_division=0)
    )
