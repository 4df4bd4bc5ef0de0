"""Keep at most three models of each family: best, median and worst by full score.

A family is a merge recipe or a training run. Without pruning, many near-copies of one parent would
decide which items look informative. Rules: docs/methods.md, Families and pruning.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mteblite.suites.task_types import shares

KEPT = 3
"""Models kept per family, at evenly spaced ranks: worst, median (`(n - 1) // 2`) and best."""
SCORE_DECIMALS = 12
"""Scores that are equal to this many decimals are tied, whatever the float noise."""


def prune_families(
    full_scores: pd.DataFrame,
    families: dict[str, str],
    task_types: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return for each reference model whether it is kept.

    Args:
        full_scores: one row per (model, task) with `main_score`; NaN = no score.
        families: family of every model, also of models without a score.
        task_types: type of every task, see `TaskTypes`: parts of an aggregate count as one task.

    Returns:
        One row per model of `families`, sorted by name: `model`, `family`, `kept`, `score` (mean
        over the tasks that all scored members of the family share; NaN without a score) and
        `n_in_family` (members, scored or not). Models without any score are not kept.

    Raises:
        ValueError: a scored model has no family, or a (model, task) has two scores.
    """
    scores = _score_matrix(full_scores, families)
    rows: list[dict[str, object]] = []
    for family in sorted(set(families.values())):
        members = sorted(model for model, f in families.items() if f == family)
        score = _shared_scores(scores.loc[members], task_types or {})
        kept = _kept_models(score.dropna())
        rows += [
            {
                "model": model,
                "family": family,
                "kept": model in kept,
                "score": float(score[model]),
                "n_in_family": len(members),
            }
            for model in members
        ]
    columns = ["model", "family", "kept", "score", "n_in_family"]
    return pd.DataFrame(rows, columns=columns).sort_values("model", ignore_index=True)


def _score_matrix(full_scores: pd.DataFrame, families: dict[str, str]) -> pd.DataFrame:
    """Return the scores as models by tasks; NaN without a finite score."""
    unknown = sorted(set(full_scores["model"]) - set(families))
    if unknown:
        raise ValueError(f"model {unknown[0]!r} has full scores but no family: name its family")
    doubled = full_scores.duplicated(["model", "task"])
    if doubled.any():
        first = full_scores.loc[doubled].iloc[0]
        raise ValueError(f"{first['model']} has two full scores for {first['task']}: keep one")
    finite = full_scores.loc[np.isfinite(full_scores["main_score"].astype(float))]
    matrix = finite.pivot(index="model", columns="task", values="main_score").astype(float)
    return matrix.reindex(sorted(families))


def _shared_scores(scores: pd.DataFrame, types: Mapping[str, str]) -> pd.Series:
    """Return each model's mean over the tasks of all scored members, else over its own tasks."""
    scored = scores.dropna(how="all").index
    shared = scores.loc[scored].dropna(axis=1)
    used = shared if shared.shape[1] else scores.loc[scored]
    mass = used.notna() * shares([str(task) for task in used.columns], types)
    means = (used.fillna(0.0) * mass).sum(axis=1) / mass.sum(axis=1)
    return means.reindex(scores.index)


def _kept_models(score: pd.Series) -> set[str]:
    """Return the models at KEPT evenly spaced ranks of a family; ties by model name."""
    names = [str(name) for name in score.index]
    ordered = sorted(names, key=lambda m: (round(float(score[m]), SCORE_DECIMALS), m))
    if len(ordered) <= KEPT:
        return set(ordered)
    return {ordered[(len(ordered) - 1) * rank // (KEPT - 1)] for rank in range(KEPT)}
