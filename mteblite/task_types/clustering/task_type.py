"""Clustering: labelled documents, scored by how well k-means finds the labels."""

from __future__ import annotations

from mteblite.task_types.clustering import data, outcomes, pool
from mteblite.task_types.clustering.surrogate import check_not_degenerate, surrogate
from mteblite.task_types.task_type import SetMetric, TaskType
from mteblite.task_types.texts import columns_of_items, texts_in

CLUSTERING = TaskType(
    name="Clustering",
    outcome="1 if the majority label of the item's k-means cluster is its own",
    metrics=outcomes.METRICS,
    texts_per_item=1.0,
    draw_pool=pool.draw_pool,
    score_pool=outcomes.score_pool,
    identify=pool.identify,
    texts=texts_in(documents=("text",)),
    read_cell=data.read_cell,
    protocol=data.protocol_of,
    cut=data.cut,
    text_kinds=columns_of_items("text_statistics"),
    set_metric=SetMetric(
        outcomes.observe,
        outcomes.set_statistic,
        surrogate,
        strata="few_labels",
        check_selection=check_not_degenerate,
    ),
    strata_are_labels=True,
)
