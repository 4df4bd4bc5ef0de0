"""BitextMining: sentences and their translations, scored by how many are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.bitext_mining.data import cut, own_table, protocol_of, read_cell
from mteblite.task_types.bitext_mining.outcomes import METRICS, score_pool
from mteblite.task_types.bitext_mining.pool import draw_pool, identify
from mteblite.task_types.frame_texts import texts_in
from mteblite.task_types.own_tables import own_tables
from mteblite.task_types.task_type import Frames, Statistics, TaskType, TextKind
from mteblite.task_types.text_counts import columns_of_items, items_by_cell, text_kind

DISTRACTORS = 1000

_pairs = texts_in(pairs=("sentence1", "sentence2"))
_sources = columns_of_items("sentence1_statistics")


def texts(frames: Frames, pool: Pool, cell: Cell) -> Iterator[str]:
    """Yield both sentences of the pairs, and the sentences to search where they are apart."""
    yield from _pairs(frames, pool, cell)
    yield from frames.get("targets") or ()


def text_kinds(cells: Mapping[Cell, Statistics], settings: PoolSettings) -> list[TextKind]:
    """Return the sources, and the targets with their distractors.

    Parallel subsets share the targets of one target language.
    """
    quota = items_by_cell(cells, settings)
    shared: dict[tuple[str, str, float], TextKind] = {}
    for (split, subset), statistics in cells.items():
        n, length = text_kind(statistics["sentence2_statistics"])
        key = (split, subset.split("-")[-1], n)
        number = min(n, quota[split, subset] + DISTRACTORS)
        shared[key] = max(shared.get(key, (0.0, 0.0)), (number, length))
    return [*_sources(cells, settings), *shared.values()]


BITEXT_MINING = TaskType(
    name="BitextMining",
    outcome="1 if the gold target is the nearest of target and distractors",
    metrics=METRICS,
    texts_per_item=2.0,
    draw_pool=draw_pool,
    score_pool=score_pool,
    identify=identify,
    texts=texts,
    read_cell=read_cell,
    protocol=protocol_of,
    cut=cut,
    text_kinds=text_kinds,
    own_data=own_tables("f1", "AbsTaskBitextMining", own_table),
    # Recall weighted by support is the accuracy.
    mean_is_score=lambda metric: metric in ("accuracy", "recall"),
)
