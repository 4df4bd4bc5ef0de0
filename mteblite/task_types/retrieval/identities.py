"""Items and texts of a search task in its loaded data."""

from __future__ import annotations

from collections.abc import Iterator

from mteblite.pools.corpus import Corpus
from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.restriction import of_cell
from mteblite.task_types.retrieval.metric_names import SUBQUERIES
from mteblite.task_types.task_type import Frames


def identify(frames: Frames, metric: str) -> tuple[list[int], list[str]]:
    """Return the rows of `queries` and the id of the item of each."""
    names = [str(query) for query in frames["queries"]["query_id"]]
    if metric.startswith(SUBQUERIES):
        names = [name.rpartition("_")[0] for name in names]
    return list(range(len(names))), names


def texts(frames: Frames, pool: Pool, cell: Cell) -> Iterator[str]:
    """Yield the texts of the pool's queries and documents; a corpus may hold millions more."""
    queries = frames["queries"]
    asked = set(of_cell(pool.frames["queries"], cell)["query_id"])
    chosen = queries["query_id"].astype(str).isin(asked)
    yield from queries.loc[chosen, "text"].tolist()
    yield from _documents(frames["corpus"], set(of_cell(pool.frames["documents"], cell)["doc_id"]))


def _documents(corpus: Corpus, wanted: set[str]) -> list[str]:
    rows: dict[str, int] = {}
    for row, document in enumerate(corpus.ids):
        if document in wanted:
            rows.setdefault(document, row)
    return corpus.texts(list(rows.values()))
