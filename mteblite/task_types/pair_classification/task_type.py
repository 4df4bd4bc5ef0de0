"""PairClassification: pairs of texts that belong together or not, scored by average precision."""

from __future__ import annotations

from mteblite.task_types.own_files import own_tables
from mteblite.task_types.pair_classification import data, outcomes, pool
from mteblite.task_types.sts.data import prompt_types
from mteblite.task_types.task_type import SetMetric, TaskType
from mteblite.task_types.texts import columns_of_items, texts_in

PAIR_CLASSIFICATION = TaskType(
    name="PairClassification",
    outcome="1 if the pair is right at the accuracy-optimal cosine threshold",
    metrics=outcomes.METRICS,
    texts_per_item=2.0,
    draw_pool=pool.draw_pool,
    score_pool=outcomes.score_pool,
    identify=pool.identify,
    texts=texts_in(pairs=("text1", "text2")),
    read_cell=data.read_cell,
    protocol=prompt_types,
    cut=data.cut,
    text_kinds=columns_of_items("text1_statistics", "text2_statistics"),
    set_metric=SetMetric(
        outcomes.observe, outcomes.set_statistic, outcomes.surrogate, strata="labels"
    ),
    own_data=own_tables("max_ap", "AbsTaskPairClassification", data.own_table),
)
