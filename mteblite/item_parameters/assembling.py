"""Make a task's evidence of the rows of earlier stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from mteblite.item_parameters.evidence import TaskEvidence

LoadArray = Callable[[str, str], np.ndarray]
"""Returns the observations (n_items, d) of a model from a file of that name."""


def assemble_evidence(
    task: Mapping[str, object],
    items: pd.DataFrame,
    matrix: pd.DataFrame,
    full_scores: pd.DataFrame,
    kept: pd.DataFrame,
    load: LoadArray,
) -> TaskEvidence:
    """Return the evidence of one suite task: kept models that have a full score and outcomes.

    Args:
        task: row of `suites.suite_tasks` (task, task_type, kind, part_of).
        items: rows of `pools.shared_pool_items` of its pool.
        matrix: rows of `outcomes.outcome_matrix`: model, pool_score, outcomes, observations.
        full_scores: rows of `reference_scores.full_score_vectors`: model, main_score.
        kept: rows of `reference_scores.kept_models`: model, family, kept.
        load: reads the observations of (model, file).

    Raises:
        ValueError: no kept model has both outcomes and a full score.
    """
    name = str(task["task"])
    items = items.sort_values("item_id", ignore_index=True)
    columns = ["item_id", "hf_subset", "split", "stratum", "gold", "pool_weight"]
    members = kept[kept["kept"]][["model", "family"]]
    rows = matrix.merge(members, on="model").merge(full_scores[["model", "main_score"]], on="model")
    rows = rows[rows["main_score"].notna()].sort_values("model", ignore_index=True)
    if rows.empty:
        raise ValueError(
            f"{name}: none of the {len(members)} kept models has both outcomes and a full score; "
            "if reference_scores found none, add `run` to `reference_scores:` in the suite file, "
            "so that mteb is run for them; else materialize outcomes and reference_scores"
        )
    is_set = task["kind"] == "set_metric"
    part_of = task.get("part_of")  # not a text in rows of older versions
    return TaskEvidence(
        task=name,
        task_type=str(task["task_type"]),
        kind=str(task["kind"]),
        items=items[columns],
        models=tuple(rows["model"]),
        families=tuple(rows["family"]),
        outcomes=np.array([list(o) for o in rows["outcomes"]], dtype=float),
        full_scores=rows["main_score"].to_numpy(float),
        pool_scores=rows["pool_score"].to_numpy(float),
        observations=tuple(map(load, rows["model"], rows["observations"])) if is_set else None,
        part_of=part_of if isinstance(part_of, str) else "",
    )
