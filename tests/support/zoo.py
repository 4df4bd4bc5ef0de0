"""A simulated zoo: families with siblings, tasks of both kinds, known abilities and items."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.seeds import generator

TOPICS = 4


def make_models(n_families: int, siblings: int = 1, prefix: str = "") -> dict[str, str]:
    """Family of each model; every third family has `siblings` members, the others one."""
    return {
        f"{prefix}f{family:02d}-m{member}": f"{prefix}f{family:02d}"
        for family in range(n_families)
        for member in range(siblings if family % 3 == 0 else 1)
    }


def make_skills(families: dict[str, str], seed: int = 0) -> dict[str, float]:
    """Overall ability per model, N(0, 1); siblings differ by a tenth of that."""
    skills: dict[str, float] = {}
    for model in sorted(families):
        shared = generator(seed, "family", families[model]).normal()
        skills[model] = float(shared + 0.1 * generator(seed, "model", model).normal())
    return skills


def make_task(
    task: str = "Sim",
    task_type: str = "Retrieval",
    *,
    families: dict[str, str] | None = None,
    n_items: int = 200,
    binary: bool = False,
    cells: int = 1,
    labels: int = 2,
    seed: int = 0,
) -> TaskEvidence:
    """A task with items of known difficulty in four topics; full score = expected outcome + noise.

    A model's ability is its own plus a topic's, shared half by its family: without topics, random
    items would be as good as any once calibrated.

    Set-metric tasks carry their outcomes as observations (n_items, 1), so that the weighted mean
    is a fair stand-in for their official statistic.
    """
    families = families or make_models(12, siblings=3)
    models = tuple(sorted(families))
    skills = make_skills(families, seed)
    rng = generator(seed, task, "items")
    topic = rng.integers(TOPICS, size=n_items)
    slope, difficulty = np.exp(0.3 * rng.normal(size=n_items)), 1.5 * rng.normal(size=n_items)
    rows = []
    full = []
    for model in models:
        own = generator(seed, task, model)
        by_topic = generator(seed, task, "family", families[model]).normal(size=TOPICS)
        theta = skills[model] + 0.5 * (by_topic + own.normal(size=TOPICS))
        p = 1.0 / (1.0 + np.exp(-slope * (theta[topic] - difficulty)))
        graded = np.clip(p + 0.15 * own.normal(size=n_items), 0.0, 1.0)
        rows.append((own.random(n_items) < p).astype(float) if binary else graded)
        full.append(float(p.mean() + 0.01 * own.normal()))
    outcomes = np.array(rows)
    set_metric = task_type in {"STS", "PairClassification", "Clustering"}
    return TaskEvidence(
        task=task,
        task_type=task_type,
        kind="set_metric" if set_metric else "per_item",
        items=make_items(n_items, cells=cells, labels=labels, seed=seed),
        models=models,
        families=tuple(families[m] for m in models),
        outcomes=outcomes,
        full_scores=np.array(full),
        pool_scores=outcomes.mean(axis=1),
        observations=tuple(o[:, None] for o in outcomes) if set_metric else None,
    )


def make_items(n_items: int, *, cells: int = 1, labels: int = 2, seed: int = 0) -> pd.DataFrame:
    """A pool's items with labels, gold scores and equal mass per cell."""
    rng = generator(seed, "items", n_items)
    cell = np.arange(n_items) % cells
    return pd.DataFrame(
        {
            "item_id": [f"i{i:05d}" for i in range(n_items)],
            "hf_subset": [f"s{c}" for c in cell],
            "split": "test",
            "stratum": [f"label{v}" for v in rng.integers(labels, size=n_items)],
            "gold": rng.integers(0, 11, size=n_items) / 2.0,
            "pool_weight": 1.0 / (cells * np.bincount(cell)[cell]),
        }
    )


def mean_statistic(
    task_type: str, observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray
) -> float:
    """A fake set statistic: the weighted mean of the first observation."""
    assert len(observations) == len(items) == len(weights)
    return float(observations[:, 0] @ weights / weights.sum())


def shuffled(evidence: TaskEvidence, seed: int = 1) -> TaskEvidence:
    """The same evidence under other model names, so that models stand in another order."""
    order = generator(seed, "shuffle").permutation(len(evidence.models))
    return TaskEvidence(
        task=evidence.task,
        task_type=evidence.task_type,
        kind=evidence.kind,
        items=evidence.items,
        models=tuple(f"renamed{i:03d}" for i in range(len(order))),
        families=tuple(evidence.families[i] for i in order),
        outcomes=evidence.outcomes[order],
        full_scores=evidence.full_scores[order],
        pool_scores=evidence.pool_scores[order],
        observations=None
        if evidence.observations is None
        else tuple(evidence.observations[i] for i in order),
    )


def observed_task(task_type: str, cells: int = 1) -> TaskEvidence:
    """A set-metric task whose observations are what the official statistic expects."""
    evidence = make_task(task_type=task_type, n_items=240)
    rng = np.random.default_rng(0)
    items = make_items(240, cells=cells, labels=12 if task_type == "Clustering" else 2)
    label = items["stratum"].str.removeprefix("label").astype(int).to_numpy()
    centers = rng.normal(size=(12, 8))
    observations = []
    for quality in np.linspace(0.2, 4.0, len(evidence.models)):
        if task_type == "Clustering":
            seen = quality * centers[label] + rng.normal(size=(240, 8))
        else:
            target = items["gold"].to_numpy() / 5 if task_type == "STS" else label
            seen = (quality * target + rng.normal(size=240))[:, None].repeat(5, axis=1)
        observations.append(seen.astype(np.float32))
    if task_type == "PairClassification":
        items["gold"] = label.astype(float)
    return dataclasses.replace(evidence, items=items, observations=tuple(observations))
