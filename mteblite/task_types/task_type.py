"""What the rest of the project may ask of a task type; every type makes one `TaskType`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from mteblite.outcomes.pool_score import PoolScore
from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.columns import TaskCell

Frames = Mapping[str, Any]
"""Frames of one cell of `TaskData`."""

Statistics = Mapping[str, Any]
"""mteb's descriptive statistics of one cell."""

TextKind = tuple[float, float]
"""Number of texts of one kind, and their mean length in characters."""

SetStatistic = Callable[[np.ndarray, pd.DataFrame, np.ndarray], float]
"""From observations (k, d), the k rows of `pool.items` and positive weights (k,) to the statistic.

It is a mean over the cells of the items; NaN = undefined in one of them."""


@dataclass(frozen=True)
class SetMetric:
    """A main score that is a statistic of a set of items, not a mean of item outcomes.

    Attributes:
        observe: (pool, vectors) -> (n_items, d) observations, from which statistics are computed.
        statistic: the official one on a few items.
        surrogate: one of less variance, which calibration maps to the official one.
        strata: the strata of a selection within a cell. `gold`: bins of the gold score, and the
            whole cell for anchors; `labels`: every label; `few_labels`: as many labels as get
            several items each.
        check_selection: refuses the items of a selection on which the statistic does not depend
            on the model.
    """

    observe: Callable[[Pool, np.ndarray], np.ndarray]
    statistic: SetStatistic
    surrogate: SetStatistic
    strata: Literal["gold", "labels", "few_labels"]
    check_selection: Callable[[pd.DataFrame], None] = lambda items: None


@dataclass(frozen=True)
class OwnRead:
    """A user's own files, read and checked.

    Attributes:
        data: plain columns, in a form of the type's own.
        notes: what was accepted but is worth knowing, in sentences.
    """

    data: Any
    notes: list[str]


@dataclass(frozen=True)
class OwnData:
    """How a user's own files become data of a task.

    Attributes:
        main_metric: main score of mteb's own tasks of the type.
        mteb_class: name of the class in `mteb.abstasks`.
        files: (task, folder, splits) -> every file that is read, in a fixed order.
        read: (task, folder, splits) -> their checked content, without mteb.
        fill: from the data that `read` returns to the `dataset` of mteb's task object.
        category: mteb's category of the task.
    """

    main_metric: str
    mteb_class: str
    files: Callable[[str, Path, Sequence[str]], list[Path]]
    read: Callable[[str, Path, Sequence[str]], OwnRead]
    fill: Callable[[Any], Any]
    category: str = "t2t"


@dataclass(frozen=True)
class TaskType:
    """One of mteb's task types.

    Attributes:
        name: mteb's name.
        outcome: what the outcome of one item is, in words.
        metrics: names of its metrics; `<k>` stands for a cut from 1 on.
        texts_per_item: mean number of texts that one item needs; the published selections are
            within 2 % of it (dataset card of MTEB-lite: 33,263 texts at K = 20, 64,455 at
            K = 100).
        draw_pool: from the loaded task to its pool.
        score_pool: (pool, vectors (n_texts, dim), similarity=the model's own) -> outcomes and
            pool score.
        identify: (frames of a cell, main metric) -> the rows of its items, and the identity of
            each, from which `item_ids` makes its id.
        texts: (frames of a cell, pool, cell) -> the texts that the pool may need.
        read_cell: from a loaded mteb task to the frames of a cell, given the protocol.
        protocol: settings of a loaded mteb task that its score depends on.
        cut: keep only the items of a pool in a loaded mteb task; gets the task, the pool, the data
            as read, and the rows of the items by cell.
        text_kinds: from mteb's statistics by cell to the texts of a pool.
        set_metric: for types whose score is a statistic of a set, else None.
        own_data: for types that a user's own files may have, else None.
        lowest_score: the lowest possible main score, -1 for correlations.
        mean_is_score: whether the pool score under a main metric is the weighted mean outcome.
        has_metric: whether a name is a metric, where `metrics` does not list all names.
        check_together: (task, metrics, the main one first) -> refuses metrics that do not combine.
        strata_are_labels: whether strata are labels of the data set, which a release must not
            publish.
    """

    name: str
    outcome: str
    metrics: tuple[str, ...]
    texts_per_item: float
    draw_pool: Callable[[TaskData, PoolSettings], Pool]
    score_pool: Callable[..., PoolScore]
    identify: Callable[[Frames, str], tuple[list[int], list[str]]]
    texts: Callable[[Frames, Pool, Cell], Iterator[str]]
    read_cell: Callable[[Any, TaskCell, dict[str, Any]], dict[str, Any]]
    protocol: Callable[[Any], dict[str, Any]]
    cut: Callable[[Any, Pool, TaskData, Mapping[Cell, list[int]]], None]
    text_kinds: Callable[[Mapping[Cell, Statistics], PoolSettings], list[TextKind]]
    set_metric: SetMetric | None = None
    own_data: OwnData | None = None
    lowest_score: float = 0.0
    mean_is_score: Callable[[str], bool] = lambda metric: False
    has_metric: Callable[[str], bool] | None = None
    check_together: Callable[[str, Sequence[str]], None] = lambda task, names: None
    strata_are_labels: bool = False

    @property
    def kind(self) -> str:
        """`set_metric` or `per_item`."""
        return "per_item" if self.set_metric is None else "set_metric"

    @property
    def lowest_outcome(self) -> float:
        """The lowest possible outcome; under a set metric outcomes are shares."""
        return self.lowest_score if self.set_metric is None else 0.0

    def check_metrics(self, task: str, names: Sequence[str]) -> None:
        """Check that the type has these metrics, the main one first.

        Raises:
            ValueError: one is unknown, or does not combine with the main one; names the task.
        """
        for name in names:
            known = name in self.metrics if self.has_metric is None else self.has_metric(name)
            if not known:
                raise ValueError(
                    f"{task}: metric {name!r} is not supported; {self.name} has: "
                    f"{', '.join(self.metrics)}"
                )
        self.check_together(task, names)
