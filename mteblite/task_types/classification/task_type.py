"""Classification: labelled texts, scored by classifiers that mteb fits on few train rows."""

from __future__ import annotations

from collections.abc import Mapping

from mteblite.pools.items import Cell
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.classification import data, outcomes, own_data, pool
from mteblite.task_types.own_files import own_tables
from mteblite.task_types.task_type import Statistics, TaskType, TextKind
from mteblite.task_types.texts import items_by_cell, text_kind, texts_in

TRAIN_ROWS_PER_LABEL = 8
EXPERIMENTS = 10
"""Train rows that mteb draws by default; some tasks draw 16 or 32 per label."""


def text_kinds(cells: Mapping[Cell, Statistics], settings: PoolSettings) -> list[TextKind]:
    """Return the test texts and the train texts of every cell."""
    quota = items_by_cell(cells, settings)
    found: list[TextKind] = []
    for cell, statistics in cells.items():
        _, length = text_kind(statistics["text_statistics"])
        labels = float(statistics["label_statistics"]["unique_labels"])
        train = labels * TRAIN_ROWS_PER_LABEL * EXPERIMENTS
        found += [(quota[cell], length), (train, length)]
    return found


CLASSIFICATION = TaskType(
    name="Classification",
    outcome="fraction of mteb's logistic regressions that label the text correctly",
    metrics=outcomes.METRICS,
    texts_per_item=1.0,
    draw_pool=pool.draw_pool,
    score_pool=outcomes.score_pool,
    identify=pool.identify,
    texts=texts_in(train=("text",), test=("text",)),
    read_cell=data.read_cell,
    protocol=data.protocol_of,
    cut=data.cut,
    text_kinds=text_kinds,
    own_data=own_tables(
        "accuracy",
        "AbsTaskClassification",
        own_data.own_table,
        extra_splits=("train",),
        category="t2c",
        agree=own_data.agree,
    ),
    # Recall weighted by support is the accuracy.
    mean_is_score=lambda metric: metric in ("accuracy", "recall_weighted"),
    strata_are_labels=True,
)
