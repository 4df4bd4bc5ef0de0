"""A task of a suite: its type, metric, splits, subsets, and the source of its data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TaskDescription:
    """A task as mteb (or the user's file) defines it.

    Attributes:
        task: mteb's task name, or the name in the user's file.
        task_type: mteb's type, also one that mteblite does not support.
        main_metric: name of the main score, e.g. `ndcg_at_10`, `cosine_spearman`.
        splits: evaluation splits, in mteb's order; the task score is the mean over cells.
        hf_subsets: subsets, in mteb's order.
        dataset_revision: revision of the data set that mteb pins; a hash of the content of a
            user's own files.
        source: `mteb`, `sample` or `path`.
        path: folder of a user's own data, else None.
        metrics: extra metrics that the suite file asks for.
    """

    task: str
    task_type: str
    main_metric: str
    splits: tuple[str, ...]
    hf_subsets: tuple[str, ...]
    dataset_revision: str = ""
    source: str = "mteb"
    path: str | None = None
    metrics: tuple[str, ...] = ()
