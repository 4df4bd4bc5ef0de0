"""Classification: labelled texts, scored by classifiers that mteb fits on few train rows."""

from __future__ import annotations

from collections.abc import Mapping

from mteblite.pools.items import Cell
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.classification.data import cut, own_table, protocol_of, read_cell
from mteblite.task_types.classification.outcomes import METRICS, score_pool
from mteblite.task_types.classification.pool import draw_pool, identify
from mteblite.task_types.frame_texts import texts_in
from mteblite.task_types.own_tables import own_tables
from mteblite.task_types.task_type import Statistics, TaskType, TextKind
from mteblite.task_types.text_counts import items_by_cell, text_kind

TRAIN_ROWS_PER_LABEL = 8
EXPERIMENTS = 10
"""Train rows that mteb's classification draws by default; some tasks draw 16 or 32 a label."""


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
    metrics=METRICS,
    texts_per_item=1.0,
    draw_pool=draw_pool,
    score_pool=score_pool,
    identify=identify,
    texts=texts_in(train=("text",), test=("text",)),
    read_cell=read_cell,
    protocol=protocol_of,
    cut=cut,
    text_kinds=text_kinds,
    own_data=own_tables(
        "accuracy", "AbsTaskClassification", own_table, extra_splits=("train",), category="t2c"
    ),
    # Recall weighted by support is the accuracy.
    mean_is_score=lambda metric: metric in ("accuracy", "recall_weighted"),
    strata_are_labels=True,
)
