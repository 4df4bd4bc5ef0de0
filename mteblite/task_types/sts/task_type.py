"""STS: pairs of texts with a gold similarity, scored by a correlation."""

from __future__ import annotations

from mteblite.task_types.columns import cut_rows
from mteblite.task_types.frame_texts import texts_in
from mteblite.task_types.own_tables import own_tables
from mteblite.task_types.sts.data import own_table, protocol_of, read_cell
from mteblite.task_types.sts.outcomes import (
    METRICS,
    observe,
    score_pool,
    set_statistic,
    surrogate,
)
from mteblite.task_types.sts.pool import draw_pool, identify
from mteblite.task_types.task_type import SetMetric, TaskType
from mteblite.task_types.text_counts import columns_of_items

STS = TaskType(
    name="STS",
    outcome="1 - abs(percentile of the cosine - percentile of the gold score)",
    metrics=METRICS,
    texts_per_item=2.0,
    lowest_score=-1.0,
    draw_pool=draw_pool,
    score_pool=score_pool,
    identify=identify,
    texts=texts_in(pairs=("text1", "text2")),
    read_cell=read_cell,
    protocol=protocol_of,
    cut=cut_rows,
    text_kinds=columns_of_items("text1_statistics", "text2_statistics"),
    set_metric=SetMetric(observe, set_statistic, surrogate, strata="gold"),
    own_data=own_tables("cosine_spearman", "AbsTaskSTS", own_table),
)
