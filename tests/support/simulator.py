"""A simulated zoo on the public score matrix of MTEB(eng, v2): real full scores, simulated items.

45 reference models of 33 organisations (families) with their official scores on 41 tasks. Scores
that the product refuses (`suspicion.py`) are left out, and public scores that it takes with a note.
Every task gets a pool of items whose outcomes have, within a model, the spread that was measured
on real data (docs/methods.md, Spread of items). A model's mean over infinitely many items is its
full score, so the pool's error comes by itself; tasks with fewer items than a pool takes are in it
whole.

Set statistics are weighted means of simulated contributions: the official one has the noise of
average precision, Spearman and V-measure, not their shape. A surrogate has less noise and an error
of each model that more items do not remove (`VALIDITY`).

The structure of outcomes is that of the nine tasks and sixteen models of the suite `sample`. There,
within a task, outcomes correlate 0.23 to 0.48 between models of two families (median 0.38; standard
deviation over pairs 0.11 to 0.29) and 0.30 to 0.80 within a family (median 0.68). After item and
model means are removed, the two largest singular values hold 0.13 to 0.30 (median 0.21) and 0.11 to
0.22 (median 0.17) of the variance, where equal ones hold 0.07; the kurtosis is -0.9 to 3.2 (median
0.4). So models share difficulty and two skills, which clusters of similar items need in different
degrees, and families share more. A few per cent of the items do not depend on ability, or fall with
it. Limits: all tasks have the same shares, and the errors of surrogates are independent between
tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import norm

from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.seeds import generator
from mteblite.validation.joint_folds import PublicScores
from support.public_matrix import Matrix

ITEM_SD = {"Retrieval": 0.39, "Reranking": 0.25, "Classification": 0.30, "Summarization": 0.30}
STATISTIC_SD = {
    "official": {"PairClassification": 0.65, "STS": 0.50, "Clustering": 0.36},
    "surrogate": {"PairClassification": 0.40, "STS": 0.40, "Clustering": 0.28},
}
SHARED = 0.44
"""Share of the latent variance of items that is difficulty, common to all models."""
SKILLS, SKILL_SHARE = 2, 0.16
"""Further skills of a task, and the share of variance that they explain together."""
SKILL_OF_FAMILY = 0.7
"""Correlation of the skills of models of a family."""
CLUSTERS, CLUSTER_SHARE = 12, 0.7
"""Clusters of similar items, and the share of what an item needs that is its cluster's."""
FAMILY_SHARE = 0.2
"""Share of variance that only models of a family have in common; the rest is the model's own."""
TAIL = 5
"""Degrees of freedom of Student's t, of which difficulty and a model's own part are drawn."""
BROKEN = {0.0: 0.03, -1.0: 0.01}
"""Slope of an item on ability, as a multiple of the others', and the share of such items."""
VALIDITY = 0.83
"""Correlation over models of a surrogate with the full score, on whole pools where the official
statistic has correlation 0.998 to 1: 0.80 and 0.85 (V-measure, on two tasks), 0.86 (Spearman) and
0.86 (average precision) in the suite `sample`, which leaves 1.5 to 6.5 points after a line."""
ERROR_OF_FAMILY = 0.6
"""Share of the variance of a surrogate's error that models of a family have in common."""
TEXTS = {"Retrieval": 32.0, "Reranking": 25.0, "Summarization": 27.0, "PairClassification": 2.0,
         "STS": 2.0, "Classification": 1.0, "Clustering": 1.0}  # fmt: skip
"""Texts that one more item encodes (docs/methods.md, Budgets)."""
SMALL_POOLS = {"TRECCOVID": 50, "Touche2020Retrieval.v3": 49, "SummEvalSummarization.v2": 100}
"""Tasks that have no more items: their pool is the whole task, and its mean the full score."""
CANDIDATES_SD = 0.01
"""But for what reduced candidate documents change, in retrieval."""


@dataclass(frozen=True)
class Zoo:
    """A simulated suite.

    Attributes:
        evidences: one per task.
        public: full scores of the other public models.
        types: type of each task.
        costs: texts of one more item, by task.
    """

    evidences: list[TaskEvidence]
    public: PublicScores
    types: dict[str, str]
    costs: dict[str, float] = field(default_factory=dict)


def make_zoo(
    matrix: Matrix,
    models: list[str],
    *,
    n_items: int = 1000,
    missing: float = 0.0,
    seed: int = 0,
) -> Zoo:
    """Simulate the outcomes of models on all tasks.

    Args:
        matrix: full scores.
        models: the reference models; the others of `matrix` are public scores only.
        n_items: items of a pool, where the task has as many.
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
        evidences.append(_task(task, kind, has, [families[m] for m in has], scores, size, seed))
    others = matrix.scores.mask(matrix.noted).drop(index=models)
    table = others.reset_index(names="model")
    table.insert(1, "family", [families[m] for m in table["model"]])
    costs = {task: TEXTS[kind] for task, kind in matrix.types.items()}
    return Zoo(evidences, PublicScores(table), matrix.types, costs)


def mean_statistic(
    task_type: str, observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray
) -> float:
    """The stand-in for an official set statistic: a weighted mean of contributions."""
    assert len(observations) == len(items)
    return float(observations[:, 0] @ weights / weights.sum())


def surrogate_statistic(
    task_type: str, observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray
) -> float:
    """The stand-in for its surrogate."""
    return mean_statistic(task_type, observations[:, 1:], items, weights)


def _task(
    task: str,
    kind: str,
    models: list[str],
    families: list[str],
    scores: np.ndarray,
    n_items: int,
    seed: int,
) -> TaskEvidence:
    """One task."""
    latent = _latent(task, models, families, n_items, seed)
    slopes = _slopes(task, n_items, seed)
    levels = _levels(scores, slopes)
    per_item = kind in ITEM_SD
    observations = None
    if per_item:
        outcomes = _graded(latent, levels, ITEM_SD[kind])
        if n_items == SMALL_POOLS.get(task):
            outcomes = _exact(outcomes, _whole(task, kind, models, scores, seed))
        pool_scores = outcomes.mean(axis=1)
    else:
        error = _surrogate_error(task, models, families, seed) * scores.std()
        contributions = np.stack(
            [
                levels + STATISTIC_SD["official"][kind] * latent,
                _levels(scores + error, slopes) + STATISTIC_SD["surrogate"][kind] * latent,
            ],
            axis=-1,
        )
        # What selectors see is a coarse view of the same items: hits, or rank gaps.
        outcomes = np.clip(0.7 + levels - np.median(scores) + 0.2 * latent, 0.0, 1.0)
        pool_scores = contributions[:, :, 0].mean(axis=1)
        observations = tuple(contributions)
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


def _surrogate_error(task: str, models: list[str], families: list[str], seed: int) -> np.ndarray:
    """Error of a surrogate on infinitely many items (n_models,), in sd of the full scores."""
    kin = [generator(seed, task, "error of family", family).normal() for family in families]
    own = [generator(seed, task, "error", model).normal() for model in models]
    error = np.sqrt(ERROR_OF_FAMILY) * np.array(kin) + np.sqrt(1 - ERROR_OF_FAMILY) * np.array(own)
    return np.asarray(np.sqrt(VALIDITY**-2 - 1) * error)


def _slopes(task: str, n_items: int, seed: int) -> np.ndarray:
    """Slope of each item on ability (n_items,): 1, or that of a broken item."""
    slopes, shares = [1.0, *BROKEN], [1 - sum(BROKEN.values()), *BROKEN.values()]
    return generator(seed, task, "broken").choice(slopes, size=n_items, p=shares)


def _levels(scores: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Expectations (n_models, n_items) whose mean over many items is `scores`."""
    middle = np.median(scores)
    sound = 1 - sum(share * (1 - slope) for slope, share in BROKEN.items())
    return np.asarray(middle + np.outer((scores - middle) / sound, slopes))


def _latent(
    task: str, models: list[str], families: list[str], n_items: int, seed: int
) -> np.ndarray:
    """Item effects (n_models, n_items) of variance 1: difficulty, skills, family, own."""
    difficulty = _heavy(generator(seed, task, "difficulty"), n_items)
    needs = _needs(generator(seed, task, "skills"), n_items)
    own_share = 1 - SHARED - SKILL_SHARE - FAMILY_SHARE
    rows = []
    for model, family in zip(models, families, strict=True):
        of_family, of_model = (
            generator(seed, task, "family", family), generator(seed, task, "model", model),
        )  # fmt: skip
        skill = np.sqrt(SKILL_OF_FAMILY) * of_family.normal(size=SKILLS)
        skill += np.sqrt(1 - SKILL_OF_FAMILY) * of_model.normal(size=SKILLS)
        rows.append(
            np.sqrt(SKILL_SHARE) * (skill / np.linalg.norm(skill)) @ needs
            + np.sqrt(FAMILY_SHARE) * of_family.normal(size=n_items)
            + np.sqrt(own_share) * _heavy(of_model, n_items)
        )
    return np.sqrt(SHARED) * difficulty + np.array(rows)


def _needs(rng: np.random.Generator, n_items: int) -> np.ndarray:
    """How much each item needs each skill (SKILLS, n_items): mean 0, variance 1, in clusters."""
    centres = rng.normal(size=(SKILLS, CLUSTERS))
    # Of mean 0, because skills must not move a model's mean over infinitely many items.
    centres = (centres - centres.mean(axis=1, keepdims=True)) / centres.std(axis=1, keepdims=True)
    centres = centres[:, rng.integers(CLUSTERS, size=n_items)]
    own = rng.normal(size=(SKILLS, n_items))
    return np.asarray(np.sqrt(CLUSTER_SHARE) * centres + np.sqrt(1 - CLUSTER_SHARE) * own)


def _heavy(rng: np.random.Generator, size: int) -> np.ndarray:
    """Draws of variance 1 with heavy tails."""
    return np.asarray(rng.standard_t(TAIL, size=size) / np.sqrt(TAIL / (TAIL - 2)))


@cache
def _quantiles() -> np.ndarray:
    """400 quantiles of an item effect."""
    rng, size = generator(0, "quantiles"), 200_000
    own_share = 1 - SHARED - SKILL_SHARE - FAMILY_SHARE
    drawn = np.sqrt(SHARED) * _heavy(rng, size) + np.sqrt(own_share) * _heavy(rng, size)
    drawn += np.sqrt(SKILL_SHARE + FAMILY_SHARE) * rng.normal(size=size)
    return np.asarray(np.quantile(drawn, (np.arange(400) + 0.5) / 400))


def _graded(latent: np.ndarray, levels: np.ndarray, sd: float) -> np.ndarray:
    """Outcomes in [0, 1] with expectation `levels` and, at their median, spread `sd`."""
    level = np.clip(levels, 0.01, 0.99)
    middle = float(np.median(level))
    grid = _quantiles()
    low, high = 0.05, 50.0
    for _ in range(40):
        steep = float(np.sqrt(low * high))
        wide = norm.cdf(_shift(middle, steep) + steep * grid).std() > sd
        low, high = (low, steep) if wide else (steep, high)
    return np.asarray(norm.cdf(_shift(level, low) + low * latent))


def _shift(levels: float | np.ndarray, steep: float) -> np.ndarray:
    """Return the shifts s with E Phi(s + steep * X) = level, X an item effect."""
    # The shifts of a standard normal X cover the range; the means at them are interpolated.
    shifts = norm.ppf(np.linspace(0.002, 0.998, 60)) * np.sqrt(1 + steep**2)
    means = norm.cdf(shifts[:, None] + steep * _quantiles()).mean(axis=1)
    return np.asarray(np.interp(levels, means, shifts))
