"""Run one candidate on the selected items of every task of a lite suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.lite_scores.chance import ChanceTest
from mteblite.lite_scores.observing import observe_selection
from mteblite.models.loaded_tensors import ModelError
from mteblite.models.pool_vectors import collapse, collapse_warning
from mteblite.pools.restriction import restrict
from mteblite_assets.graph.work import Work
from mteblite_assets.pools.assets import stored_pool

if TYPE_CHECKING:
    from mteblite.models.stored_encoder import StoredEncoder


@dataclass
class Observed:
    """What a candidate did.

    Attributes:
        results: per task the outcomes (k,) or observations (k, d) on its selection.
        failed: tasks that could not be scored, with the reason.
        collapsed: tasks whose texts all got one vector, see `pool_vectors.collapse`.
        chance: whether the others are scores of chance.
        n_texts: texts of the selections.
        n_encoded: texts that were encoded now.
        warnings: what the scores silently depend on.
    """

    results: dict[str, np.ndarray] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    collapsed: dict[str, str] = field(default_factory=dict)
    chance: ChanceTest = field(default_factory=ChanceTest)
    n_texts: int = 0
    n_encoded: int = 0
    warnings: list[str] = field(default_factory=list)


def observe_candidate(
    work: Work, rows: pd.DataFrame, fitted: Sequence[FittedTask], *, may_fail: bool
) -> Observed:
    """Return what the candidate of a partition does on every task.

    Args:
        work: the partition.
        rows: rows of `lite_scores.lite_suites`, in the order of `fitted`.
        fitted: the suite's tasks.
        may_fail: whether single tasks may fail, because the others predict them.

    Raises:
        ValueError: the model cannot be run, no task could be scored, or one that may not fail.
    """
    encoder = work.ports.models.encoder(work.model, work.max_tokens, work.progress)
    before = encoder.counts.encoded
    seen = Observed()
    for row, task in zip(rows.to_dict("records"), fitted, strict=True):
        work.progress(f"scoring {task.task} on {len(task.selection)} items")
        try:
            _observe(work, {str(k): v for k, v in row.items()}, task, encoder, seen)
        except ModelError:
            raise
        except ValueError as error:
            if not may_fail:
                raise
            seen.failed[task.task] = str(error)
            work.progress(f"{task.task} cannot be scored: {error}")
    if not seen.results:
        raise ValueError("; ".join(dict.fromkeys(seen.failed.values())))
    seen.n_encoded = encoder.counts.encoded - before
    collapsed = collapse_warning(seen.collapsed, len(fitted))
    seen.warnings = [*encoder.warnings, *collapsed, *seen.chance.warning()]
    return seen


def _observe(
    work: Work, row: dict[str, Any], task: FittedTask, encoder: StoredEncoder, seen: Observed
) -> None:
    """Add the results of one task."""
    pool = stored_pool(work, pd.DataFrame([row]), str(row["pool_task"]))
    cut = restrict(pool, task.selection["item_id"].tolist())
    description = work.ports.tasks.describe(work.suite.task(task.task))
    vectors = work.ports.models.embed(cut, encoder, description)
    seen.n_texts += len(vectors)
    seen.results[task.task] = observe_selection(
        task.kind, cut, vectors, task.selection, similarity=encoder.similarity_name
    )
    equal = collapse(cut, vectors)
    if equal:
        seen.collapsed[task.task] = equal
    else:
        results = seen.results[task.task]
        seen.chance.add(task, cut, vectors, results, encoder.similarity_name)
