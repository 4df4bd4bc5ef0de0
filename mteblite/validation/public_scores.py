"""Full scores of models without item outcomes, for the covariance of a joint calibration."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from mteblite.validation.joint_folds import PublicScores


def gather_public_scores(
    tasks: pd.DataFrame,
    members: pd.DataFrame,
    full_scores: pd.DataFrame,
    known: Collection[str],
    official: pd.DataFrame | None = None,
) -> PublicScores | None:
    """Return the scores of models without outcomes; None without any.

    Args:
        tasks: task, pool_task of the suite.
        members: model, family of the suite's reference models, also of pruned ones.
        full_scores: pool_task, model, main_score.
        known: models with outcomes, which are left out.
        official: model, family, task, main_score of models outside the suite, e.g. of
            `official_scores`; rows of the suite's models are left out.

    Raises:
        ValueError: a model has two scores of a task.
    """
    scores = full_scores.merge(tasks[["task", "pool_task"]], on="pool_task")
    scores = scores.merge(members[["model", "family"]].drop_duplicates(), on="model")
    rows = scores[["model", "family", "task", "main_score"]]
    if official is not None:
        ours = set(members["model"]) | set(known)
        foreign = official[~official["model"].isin(ours) & official["task"].isin(tasks["task"])]
        rows = pd.concat([rows, foreign[list(rows.columns)]], ignore_index=True)
    rows = rows[~rows["model"].isin(set(known)) & rows["main_score"].notna()]
    if rows.empty:
        return None
    table = rows.pivot(index=["model", "family"], columns="task", values="main_score")
    return PublicScores(table.reset_index().rename_axis(columns=None))
