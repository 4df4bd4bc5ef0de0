"""Keep at most a few models of each family: best, median and worst by full score.

Families are merge recipes or training runs; many near-copies of one parent would otherwise
decide which items look informative. Rules: docs/methods.md, Families and pruning.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from mteblite.suites.task_types import shares

SCORE_DECIMALS = 12
"""Scores closer than this are tied, so that float noise never changes who is kept."""


def prune_families(
    full_scores: pd.DataFrame,
    families: dict[str, str],
    keep: int = 3,
    task_types: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Say which reference models stay.

    Args:
        full_scores: one row per (model, task) with `main_score`; NaN = no score.
        families: family of every model, also of models without a score.
        keep: models kept per family; of the sorted family the evenly spaced ones stay, so 3
            means worst, median (`(n - 1) // 2`) and best.
        task_types: type of every task, see `TaskTypes`: parts of an aggregate count as one task.

    Returns:
        One row per model of `families`, sorted by name: `model`, `family`, `kept`, `score` (mean
        over the tasks that all scored members of the family share; NaN where there is none) and
        `n_in_family` (members, scored or not). Models without any score are not kept.

    Raises:
        ValueError: `keep` is below 1, a scored model has no family, or a (model, task) is doubled.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}: at least 1 model per family must stay")
    scores = _score_matrix(full_scores, families)
    rows: list[dict[str, object]] = []
    for family in sorted(set(families.values())):
        members = sorted(model for model, f in families.items() if f == family)
        score = _shared_scores(scores.loc[members], task_types or {})
        stay = _spread(score.dropna(), keep)
        rows += [
            {
                "model": model,
                "family": family,
                "kept": model in stay,
                "score": float(score[model]),
                "n_in_family": len(members),
            }
            for model in members
        ]
    columns = ["model", "family", "kept", "score", "n_in_family"]
    return pd.DataFrame(rows, columns=columns).sort_values("model", ignore_index=True)


def _score_matrix(full_scores: pd.DataFrame, families: dict[str, str]) -> pd.DataFrame:
    """Models by tasks, NaN where there is no finite score."""
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
    """Mean over the tasks shared by all scored members; over own tasks where none is shared."""
    scored = scores.dropna(how="all").index
    shared = scores.loc[scored].dropna(axis=1)
    used = shared if shared.shape[1] else scores.loc[scored]
    mass = used.notna() * shares([str(task) for task in used.columns], types)
    means = (used.fillna(0.0) * mass).sum(axis=1) / mass.sum(axis=1)
    return means.reindex(scores.index)


def _spread(score: pd.Series, keep: int) -> set[str]:
    """Models at evenly spaced places of the sorted family; ties by model name."""
    names = [str(name) for name in score.index]
    ordered = sorted(names, key=lambda m: (round(float(score[m]), SCORE_DECIMALS), m))
    n = len(ordered)
    if n <= keep:
        return set(ordered)
    if keep == 1:
        return {ordered[-1]}
    return {ordered[(n - 1) * place // (keep - 1)] for place in range(keep)}
