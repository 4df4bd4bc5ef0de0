"""Summarization: machine summaries, scored by a correlation with human judgement per document."""

from __future__ import annotations

from collections.abc import Mapping

from mteblite.pools.items import Cell
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.columns import cut_rows
from mteblite.task_types.summarization import data, outcomes, pool
from mteblite.task_types.task_type import Statistics, TaskType, TextKind
from mteblite.task_types.texts import items_by_cell, text_kind, texts_in


def text_kinds(cells: Mapping[Cell, Statistics], settings: PoolSettings) -> list[TextKind]:
    """Return the human and the machine summaries of every cell."""
    quota = items_by_cell(cells, settings)
    found: list[TextKind] = []
    for cell, statistics in cells.items():
        share = quota[cell] / float(statistics["num_samples"])
        for column in ("human_summaries_statistics", "machine_summaries_statistics"):
            n, length = text_kind(statistics[column])
            found.append((share * n, length))
    return found


SUMMARIZATION = TaskType(
    name="Summarization",
    outcome="Spearman correlation of human relevance and largest cosine to a reference",
    metrics=outcomes.METRICS,
    texts_per_item=27.0,
    lowest_score=-1.0,
    draw_pool=pool.draw_pool,
    score_pool=outcomes.score_pool,
    identify=pool.identify,
    texts=texts_in(documents=("text", "human_summaries", "machine_summaries")),
    read_cell=data.read_cell,
    protocol=data.protocol_of,
    cut=cut_rows,
    text_kinds=text_kinds,
    # A document whose summaries all have one human score has no outcome, as mteb skips it.
    mean_is_score=lambda metric: True,
)
