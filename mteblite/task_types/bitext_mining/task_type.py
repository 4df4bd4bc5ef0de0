"""BitextMining: sentences and their translations, scored by how many are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.bitext_mining import data, outcomes
from mteblite.task_types.bitext_mining.pool import draw_pool, identify
from mteblite.task_types.own_files import own_tables, sentences
from mteblite.task_types.task_type import Frames, Statistics, TaskType, TextKind
from mteblite.task_types.texts import columns_of_items, items_by_cell, text_kind, texts_in

DISTRACTORS = 1000

_pairs = texts_in(pairs=("sentence1", "sentence2"))
_sources = columns_of_items("sentence1_statistics")


def texts(frames: Frames, pool: Pool, cell: Cell) -> Iterator[str]:
    """Yield both sentences of the pairs, and the sentences to search where they are separate."""
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
    metrics=outcomes.METRICS,
    texts_per_item=2.0,
    draw_pool=draw_pool,
    score_pool=outcomes.score_pool,
    identify=identify,
    texts=texts,
    read_cell=data.read_cell,
    protocol=data.protocol_of,
    cut=data.cut,
    text_kinds=text_kinds,
    own_data=own_tables("f1", "AbsTaskBitextMining", sentences),
    # Recall weighted by support is the accuracy.
    mean_is_score=lambda metric: metric in ("accuracy", "recall"),
)
