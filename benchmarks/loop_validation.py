"""The published method as one would first write it: scikit-learn per item, scipy per model.

What `bench_harness.py` measures the harness against. It does the same work of one task in one fold:
standardise, fit every item, select (greedy Fisher, k-means anchors, labels), estimate ability and
score of every model, calibrate. Outcomes are graded, so that items are ridge regressions.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from mteblite.calibrations.registry import Statistic
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import is_binary

Items = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Slopes, intercepts and residual variances."""


def per_item_fold(
    evidence: TaskEvidence, train: np.ndarray, k: int, variants: list[tuple[str, str]]
) -> dict[str, np.ndarray]:
    """Predict all models by each (selection, estimator), fitting and selecting once for all."""
    theta, items = fit(evidence, train)
    chosen = {}
    for selection in sorted({s for s, _ in variants}):
        if selection == "fisher":
            chosen[selection] = fisher(theta, items, k)
        else:
            chosen[selection] = anchors(evidence.outcomes[train], k)
    found = {}
    for selection, estimator in variants:
        places, weights = chosen[selection]
        raw = [estimate(estimator, model, places, weights, items) for model in evidence.outcomes]
        found[f"{selection}/{estimator}"] = calibrate(np.array(raw), evidence, train)
    return found


def set_fold(
    evidence: TaskEvidence,
    train: np.ndarray,
    k: int,
    selections: list[str],
    statistic: Statistic,
) -> dict[str, np.ndarray]:
    """Predict all models of a set metric by each selection."""
    labels = evidence.items["stratum"].to_numpy()
    rng = np.random.default_rng(0)
    found = {}
    for selection in selections:
        places, weights = [], []
        for label in sorted(set(labels)):
            members = np.flatnonzero(labels == label)
            count = round(k * len(members) / len(labels))
            if selection == "anchorset":
                local, weight = anchors(evidence.outcomes[train][:, members], count)
                places += members[local].tolist()
                weights += (weight * len(members)).tolist()
            else:
                places += rng.permutation(members)[:count].tolist()
                weights += [len(members) / count] * count
        weight = np.array(weights) / np.sum(weights)
        rows = evidence.items.iloc[places]
        raw = [
            statistic(evidence.task_type, seen[places], rows, weight)
            for seen in evidence.observations or ()
        ]
        found[selection] = calibrate(np.array(raw), evidence, train)
    return found


def random_draws(evidence: TaskEvidence, train: np.ndarray, k: int, draws: int) -> None:
    """The random baseline of one fold."""
    values = evidence.outcomes
    if evidence.observations is not None:
        values = np.stack([o[:, 0] for o in evidence.observations])
    for draw in range(draws):
        chosen = np.random.default_rng(draw).permutation(values.shape[1])[:k]
        calibrate(np.array([model[chosen].mean() for model in values]), evidence, train)


def fit(evidence: TaskEvidence, train: np.ndarray) -> tuple[np.ndarray, Items]:
    """Abilities of the training models, and one regression per item."""
    scores = evidence.full_scores[train]
    theta = (scores - scores.mean()) / scores.std()
    outcomes = evidence.outcomes[train]
    slope, intercept, rss = [], [], []
    for item in range(outcomes.shape[1]):
        y = outcomes[:, item]
        if is_binary(outcomes) and 0 < y.mean() < 1:
            logistic = LogisticRegression(C=1.0).fit(theta[:, None], y)
            slope.append(logistic.coef_[0, 0])
            intercept.append(logistic.intercept_[0])
            rss.append(0.0)
            continue
        line = Ridge(alpha=1.0).fit(theta[:, None], y)
        slope.append(line.coef_[0])
        intercept.append(line.intercept_)
        rss.append(((y - line.predict(theta[:, None])) ** 2).sum())
    freedom = len(theta) - 2
    typical = np.median(np.array(rss) / freedom)
    variance = np.maximum((np.array(rss) + 4.0 * typical) / (freedom + 4.0), 1e-4)
    return theta, (np.array(slope), np.array(intercept), variance)


def fisher(theta: np.ndarray, items: Items, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Greedy log information, item by item."""
    slope, _, variance = items
    total = np.ones(len(theta))
    chosen: list[int] = []
    for _ in range(k):
        best, most = -1, -1.0
        for item in range(len(slope)):
            if item in chosen or slope[item] <= 0:
                continue
            information = slope[item] ** 2 / variance[item]
            gain = np.log((total + information) / total).sum()
            if gain > most + 1e-12:
                best, most = item, gain
        chosen.append(best)
        total = total + slope[best] ** 2 / variance[best]
    return np.array(chosen), np.full(k, 1.0 / k)


def anchors(outcomes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Nearest unused item of each centroid of scikit-learn's k-means."""
    clusters = KMeans(k, n_init=5, random_state=0).fit(outcomes.T)
    chosen: list[int] = []
    weights = []
    for cluster, center in enumerate(clusters.cluster_centers_):
        distance = ((outcomes.T - center) ** 2).sum(axis=1)
        distance[chosen] = np.inf
        chosen.append(int(distance.argmin()))
        weights.append((clusters.labels_ == cluster).mean())
    return np.array(chosen), np.array(weights)


def estimate(
    estimator: str, outcomes: np.ndarray, places: np.ndarray, weights: np.ndarray, items: Items
) -> float:
    """Mean, p-IRT or half of both, of one model."""
    seen = outcomes[places]
    mean = float(seen @ weights)
    if estimator == "mean":
        return mean
    slope, intercept, variance = items

    def loss(theta: np.ndarray) -> float:
        gap = seen - slope[places] * theta[0] - intercept[places]
        return float((gap**2 / (2.0 * variance[places])).sum() + theta[0] ** 2 / 2.0)

    theta = minimize(loss, np.zeros(1), method="BFGS").x[0]
    pool = np.clip(slope * theta + intercept, 0.0, 1.0)
    pool[places] = seen
    return float(pool.mean()) if estimator == "pirt" else 0.5 * mean + 0.5 * float(pool.mean())


def calibrate(raw: np.ndarray, evidence: TaskEvidence, train: np.ndarray) -> np.ndarray:
    """Least squares on the training models."""
    line = LinearRegression().fit(raw[train][:, None], evidence.full_scores[train])
    return np.asarray(line.predict(raw[:, None]))
