"""PairClassification: pairs of texts that belong together or not, scored by average precision."""

from __future__ import annotations

from mteblite.task_types.frame_texts import texts_in
from mteblite.task_types.own_tables import own_tables
from mteblite.task_types.pair_classification.data import cut, own_table, read_cell
from mteblite.task_types.pair_classification.outcomes import (
    METRICS,
    observe,
    score_pool,
    set_statistic,
    surrogate,
)
from mteblite.task_types.pair_classification.pool import draw_pool, identify
from mteblite.task_types.sts.data import prompt_types
from mteblite.task_types.task_type import SetMetric, TaskType
from mteblite.task_types.text_counts import columns_of_items

PAIR_CLASSIFICATION = TaskType(
    name="PairClassification",
    outcome="1 if the pair is right at the accuracy-optimal cosine threshold",
    metrics=METRICS,
    texts_per_item=2.0,
    draw_pool=draw_pool,
    score_pool=score_pool,
    identify=identify,
    texts=texts_in(pairs=("text1", "text2")),
    read_cell=read_cell,
    protocol=prompt_types,
    cut=cut,
    text_kinds=columns_of_items("text1_statistics", "text2_statistics"),
    set_metric=SetMetric(observe, set_statistic, surrogate, strata="labels"),
    own_data=own_tables("max_ap", "AbsTaskPairClassification", own_table),
)
