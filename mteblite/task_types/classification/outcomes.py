"""Outcomes of Classification: the share of mteb's classifiers that label a text correctly.

mteb fits a logistic regression on each of `n_experiments` small draws of train rows and averages
their scores (mteb/abstasks/classification.py). All of them label the same test rows. The mean
outcome is therefore the mean accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mteblite.outcomes.cells import align, cells_of, mean_of_cells
from mteblite.outcomes.pool_score import PoolScore
from mteblite.pools.pool import Pool
from mteblite.pools.restriction import of_cell

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


def score_pool(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    """Return the share of classifiers that are right, in [0, 1], and the score.

    The similarity has no effect.
    """
    names = pool.metric_names
    test = align(pool.frames["test"], pool.items)
    codes, text_rows = test["code"].to_numpy(), test["text_row"].to_numpy()
    outcomes = np.empty(len(test))
    values: dict[str, list[float]] = {name: [] for name in names}
    for rows in cells_of(pool.items):
        split, subset = pool.items[["split", "hf_subset"]].iloc[rows[0]]
        train = of_cell(pool.frames["train"], (split, subset))
        predictions = _predict(train, vectors, vectors[text_rows[rows]], pool.meta["protocol"])
        outcomes[rows] = np.mean(predictions == codes[rows], axis=0)
        for name in names:
            values[name].append(_mean_metric(name, codes[rows], predictions))
    means = {name: mean_of_cells(scores) for name, scores in values.items()}
    return PoolScore.of(pool, outcomes, means)


def _predict(
    train: pd.DataFrame, vectors: np.ndarray, test: np.ndarray, protocol: dict[str, Any]
) -> np.ndarray:
    """Return the (n_experiments, n_test) predicted codes."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    predictions = []
    with warnings.catch_warnings():
        # mteb stops after 100 iterations, converged or not
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _, drawn in train.groupby("experiment", sort=True):
            classifier = LogisticRegression(
                max_iter=int(protocol.get("max_iter", 100)),
                random_state=int(protocol.get("seed", 42)),
            )
            classifier.fit(vectors[drawn["text_row"].to_numpy()], drawn["code"].to_numpy())
            predictions.append(classifier.predict(test))
    return np.stack(predictions)


def _mean_metric(name: str, codes: np.ndarray, predictions: np.ndarray) -> float:
    if name == "accuracy":
        return float(np.mean([np.mean(predicted == codes) for predicted in predictions]))
    if name.startswith("ap") and len(np.unique(codes)) != 2:
        return float("nan")
    return float(np.mean([_metric(name, codes, predicted) for predicted in predictions]))


def _metric(name: str, codes: np.ndarray, predicted: np.ndarray) -> float:
    from sklearn import metrics

    base, _, average = name.partition("_")
    if base == "ap":
        positive = codes.max()
        return float(metrics.average_precision_score(codes == positive, predicted == positive))
    function = getattr(metrics, f"{base}_score")
    return float(function(codes, predicted, average=average or "macro", zero_division=0))
