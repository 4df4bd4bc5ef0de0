"""A simulated zoo on the public score matrix of MTEB(eng, v2): real full scores, simulated items.

45 reference models of 33 organisations (families) with their official scores on 41 tasks. Every
task gets a pool of items whose outcomes have, within a model, the spread that was measured on real
data (docs/methods.md, Spread of items); models share difficulty, and a part that families share.
A model's mean over infinitely many items is its full score, so the pool's error comes by itself;
tasks with fewer items than a pool takes are in it whole.

Statistics of set-metric tasks are weighted means of simulated contributions: their noise is that of
average precision, Spearman and V-measure (level `official`) or of the surrogates (level
`surrogate`), not their shape. Limits: Gaussian, no item is broken, difficulty explains
`SHARED` of the variance everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.seeds import generator
from mteblite.validation.joint_folds import PublicScores

SCORES = Path(__file__).parents[2] / "../shared/scores"
BENCHMARK = "MTEB(eng, v2)"
MIN_MACRO = 0.45
"""Models below are not of the kind that anyone would reduce a benchmark for."""
ITEM_SD = {"Retrieval": 0.39, "Reranking": 0.25, "Classification": 0.30, "Summarization": 0.30}
STATISTIC_SD = {
    "official": {"PairClassification": 0.65, "STS": 0.50, "Clustering": 0.36},
    "surrogate": {"PairClassification": 0.40, "STS": 0.40, "Clustering": 0.28},
}
SHARED = 0.6
"""Share of item variance that models have in common: the correlation between models."""
FAMILY_SHARE = 0.25
"""Share of the rest that models of a family have in common."""
TEXTS = {"Retrieval": 32.0, "Reranking": 25.0, "Summarization": 27.0, "PairClassification": 2.0,
         "STS": 2.0, "Classification": 1.0, "Clustering": 1.0}  # fmt: skip
"""Texts that one more item encodes (docs/methods.md, Budgets)."""
SMALL_POOLS = {"TRECCOVID": 50, "Touche2020Retrieval.v3": 49, "SummEvalSummarization.v2": 100}
"""Tasks that have no more items: their pool is the whole task, and its mean the full score."""
CANDIDATES_SD = 0.01
"""But for what reduced candidate documents change, in retrieval."""


@dataclass(frozen=True)
class Matrix:
    """Full scores of public models, complete ones only.

    Attributes:
        scores: (n_models, n_tasks), by model name and task name.
        types: type of each task.
    """

    scores: pd.DataFrame
    types: dict[str, str]

    @property
    def families(self) -> dict[str, str]:
        """The organisation of each model."""
        return {str(m): str(m).split("/")[0] for m in self.scores.index}

    @property
    def macro(self) -> pd.Series:
        """Mean over types of the mean over tasks."""
        by_type = self.scores.T.groupby(pd.Series(self.types)).mean()
        return by_type.mean()


@dataclass(frozen=True)
class Zoo:
    """A simulated suite.

    Attributes:
        evidences: one per task.
        public: full scores of the other public models.
        types: type of each task.
        statistic_column: column of the observations that the set statistic averages.
    """

    evidences: list[TaskEvidence]
    public: PublicScores
    types: dict[str, str]
    level: str = "official"
    costs: dict[str, float] = field(default_factory=dict)


def available() -> bool:
    """Say whether the public scores are there."""
    return (SCORES / "official_scores.parquet").exists()


def load_matrix() -> Matrix:
    """Read the official scores as the leaderboard joins them (shared/scores/README.md)."""
    columns = ["model_name", "task_name", "split", "hf_subset", "main_score", "experiment",
               "lb_pick", "entry_ix"]  # fmt: skip
    scores = pd.read_parquet(SCORES / "official_scores.parquet", columns=columns)
    tasks = pd.read_parquet(SCORES / "benchmark_tasks.parquet")
    tasks = tasks[tasks["benchmark"] == BENCHMARK]
    picked = scores[scores["lb_pick"] & scores["experiment"].isna() & (scores["entry_ix"] == 0)]
    joined = picked.merge(tasks, on=["task_name", "split", "hf_subset"])
    table = joined.pivot_table(index="model_name", columns="task_name", values="main_score")
    types = dict(zip(tasks["task_name"], tasks["type"], strict=True))
    complete = Matrix(table.dropna(), types)
    return Matrix(complete.scores[complete.macro > MIN_MACRO].sort_index(), types)


def reference_models(
    matrix: Matrix, n_models: int = 45, n_families: int = 33, seed: int = 0
) -> list[str]:
    """Draw families, at most three models of each."""
    rng = generator(seed, "reference")
    families = matrix.families
    names = rng.permutation(sorted(set(families.values())))[:n_families].tolist()
    members = {f: rng.permutation([m for m in families if families[m] == f])[:3] for f in names}
    chosen = [str(members[f][0]) for f in names]
    rest = [str(m) for f in names for m in members[f][1:]]
    return sorted([*chosen, *rng.permutation(rest)[: n_models - len(chosen)].tolist()])


def make_zoo(
    matrix: Matrix,
    models: list[str],
    *,
    n_items: int = 1000,
    level: str = "official",
    missing: float = 0.0,
    seed: int = 0,
) -> Zoo:
    """Simulate the outcomes of models on all tasks.

    Args:
        matrix: full scores.
        models: the reference models; the others of `matrix` are public scores only.
        n_items: items of a pool, where the task has as many.
        level: `official` or `surrogate`, the noise of set statistics.
        missing: share of (model, task) pairs that are left out.
        seed: of all draws.
    """
    families = matrix.families
    evidences = []
    for task, kind in sorted(matrix.types.items()):
        rng = generator(seed, "missing", task)
        has = [m for m in models if rng.random() >= missing]
        size = min(n_items, SMALL_POOLS.get(task, n_items))
        scores = matrix.scores.loc[has, task].to_numpy(dtype=float)
        evidences.append(
            _task(task, kind, has, [families[m] for m in has], scores, size, level, seed)
        )
    others = matrix.scores.drop(index=models)
    table = others.reset_index(names="model")
    table.insert(1, "family", [families[m] for m in table["model"]])
    costs = {task: TEXTS[kind] for task, kind in matrix.types.items()}
    return Zoo(evidences, PublicScores(table), matrix.types, level, costs)


def mean_statistic(
    task_type: str, observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray
) -> float:
    """The stand-in for a set statistic: a weighted mean of contributions."""
    assert len(observations) == len(items)
    return float(observations[:, 0] @ weights / weights.sum())


def _task(
    task: str,
    kind: str,
    models: list[str],
    families: list[str],
    scores: np.ndarray,
    n_items: int,
    level: str,
    seed: int,
) -> TaskEvidence:
    """One task."""
    latent = _latent(task, models, families, n_items, seed)
    per_item = kind in ITEM_SD
    observations = None
    if per_item:
        outcomes = _graded(latent, scores, ITEM_SD[kind])
        if n_items == SMALL_POOLS.get(task):
            outcomes = _exact(outcomes, _whole(task, kind, models, scores, seed))
        pool_scores = outcomes.mean(axis=1)
    else:
        contributions = scores[:, None] + STATISTIC_SD[level][kind] * latent
        # What selectors see is a coarse view of the same difficulty: hits, or rank gaps.
        outcomes = np.clip(0.7 + 0.2 * latent, 0.0, 1.0)
        pool_scores = contributions.mean(axis=1)
        observations = tuple(c[:, None] for c in contributions)
    rng = generator(seed, task, "labels")
    return TaskEvidence(
        task=task,
        task_type=kind,
        kind="per_item" if per_item else "set_metric",
        items=pd.DataFrame(
            {
                "item_id": [f"i{i:05d}" for i in range(n_items)],
                "hf_subset": "default",
                "split": "test",
                "stratum": [f"l{v}" for v in rng.integers(2, size=n_items)],
                "gold": rng.random(n_items),
                "pool_weight": 1.0 / n_items,
            }
        ),
        models=tuple(models),
        families=tuple(families),
        outcomes=outcomes,
        full_scores=scores,
        pool_scores=pool_scores,
        observations=observations,
    )


def _whole(task: str, kind: str, models: list[str], scores: np.ndarray, seed: int) -> np.ndarray:
    """What a model scores on all items of a task, with the candidates of the pool."""
    if kind != "Retrieval":
        return scores
    own = [generator(seed, task, "candidates", model).normal() for model in models]
    return scores + CANDIDATES_SD * np.array(own)


def _exact(outcomes: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Move each model's outcomes (n_models, n_items) along the probit to a given mean."""
    probit = norm.ppf(np.clip(outcomes, 1e-6, 1 - 1e-6))
    target = np.clip(means, 0.001, 0.999)
    low, high = np.full(len(means), -10.0), np.full(len(means), 10.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        under = norm.cdf(probit + middle[:, None]).mean(axis=1) < target
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.asarray(norm.cdf(probit + low[:, None]))


def _latent(
    task: str, models: list[str], families: list[str], n_items: int, seed: int
) -> np.ndarray:
    """Standard normal item effects (n_models, n_items): shared, of the family, own."""
    difficulty = generator(seed, task, "difficulty").normal(size=n_items)
    parts = []
    for model, family in zip(models, families, strict=True):
        kin = generator(seed, task, "family", family).normal(size=n_items)
        own = generator(seed, task, "model", model).normal(size=n_items)
        parts.append(np.sqrt(FAMILY_SHARE) * kin + np.sqrt(1 - FAMILY_SHARE) * own)
    return np.sqrt(SHARED) * difficulty + np.sqrt(1 - SHARED) * np.array(parts)


def _graded(latent: np.ndarray, scores: np.ndarray, sd: float) -> np.ndarray:
    """Outcomes in [0, 1] with expectation `scores` and, at their median, spread `sd`."""
    level = np.clip(scores, 0.01, 0.99)
    middle = float(np.median(level))
    grid = norm.ppf((np.arange(400) + 0.5) / 400)
    low, high = 0.05, 50.0
    for _ in range(40):
        steep = np.sqrt(low * high)
        shift = norm.ppf(middle) * np.sqrt(1 + steep**2)
        wide = norm.cdf(shift + steep * grid).std() > sd
        low, high = (low, steep) if wide else (steep, high)
    shift = norm.ppf(level) * np.sqrt(1 + low**2)
    # E Phi(a + b X) = Phi(a / sqrt(1 + b^2)) for standard normal X.
    return norm.cdf(shift[:, None] + low * latent)
