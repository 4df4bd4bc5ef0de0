"""Clustering: labelled documents, scored by how well k-means finds the labels."""

from __future__ import annotations

from mteblite.task_types.clustering.data import cut, protocol_of, read_cell
from mteblite.task_types.clustering.outcomes import (
    METRICS,
    observe,
    score_pool,
    set_statistic,
)
from mteblite.task_types.clustering.pool import draw_pool, identify
from mteblite.task_types.clustering.surrogate import check_not_degenerate, surrogate
from mteblite.task_types.frame_texts import texts_in
from mteblite.task_types.task_type import SetMetric, TaskType
from mteblite.task_types.text_counts import columns_of_items

CLUSTERING = TaskType(
    name="Clustering",
    outcome="1 if the majority label of the item's k-means cluster is its own",
    metrics=METRICS,
    texts_per_item=1.0,
    draw_pool=draw_pool,
    score_pool=score_pool,
    identify=identify,
    texts=texts_in(documents=("text",)),
    read_cell=read_cell,
    protocol=protocol_of,
    cut=cut,
    text_kinds=columns_of_items("text_statistics"),
    set_metric=SetMetric(
        observe,
        set_statistic,
        surrogate,
        strata="few_labels",
        check_selection=check_not_degenerate,
    ),
    strata_are_labels=True,
)
