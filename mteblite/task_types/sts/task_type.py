"""STS: pairs of texts with a gold similarity, scored by a correlation."""

from __future__ import annotations

from mteblite.task_types.columns import cut_rows
from mteblite.task_types.own_files import own_tables
from mteblite.task_types.sts import data, outcomes, pool
from mteblite.task_types.task_type import SetMetric, TaskType
from mteblite.task_types.texts import columns_of_items, texts_in

STS = TaskType(
    name="STS",
    outcome="1 - abs(percentile of the cosine - percentile of the gold score)",
    metrics=outcomes.METRICS,
    texts_per_item=2.0,
    lowest_score=-1.0,
    draw_pool=pool.draw_pool,
    score_pool=outcomes.score_pool,
    identify=pool.identify,
    texts=texts_in(pairs=("text1", "text2")),
    read_cell=data.read_cell,
    protocol=data.protocol_of,
    cut=cut_rows,
    text_kinds=columns_of_items("text1_statistics", "text2_statistics"),
    set_metric=SetMetric(
        outcomes.observe, outcomes.set_statistic, outcomes.surrogate, strata="gold"
    ),
    own_data=own_tables("cosine_spearman", "AbsTaskSTS", data.own_table),
)
