"""Pool of a Summarization task: documents with human and machine summaries.

Reads from `TaskData.cells[(split, hf_subset)]`:
    documents: DataFrame[text, human_summaries, machine_summaries, relevance], the last three
        lists; relevance has one number per machine summary.

Frames of the pool: `human` [item_id, text_row]; `machine` [item_id, text_row, relevance].
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from mteblite.pools.assembly import Texts, assemble, item_frame
from mteblite.pools.items import check_numbers, content_ids, draw, item_ids, split_evenly
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.task_type import Frames


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the pool: all documents up to the cap (SummEval has 100).

    Raises:
        ValueError: a summary or a relevance is missing, or their numbers differ.
    """
    name = data.description.task
    if str(data.protocol.get("evaluator", "")).startswith("Deprecated"):
        raise ValueError(
            f"{name} is scored by mteb's deprecated evaluator, which averages correlations with "
            "their p-values (mteb issue 1156): use the task's newer version (its name ends in .v2)"
        )
    quota = split_evenly(
        {c: len(f["documents"]) for c, f in data.cells.items()}, settings.max_items
    )
    texts, items, humans, machines = Texts(), [], [], []
    for cell, frames in data.cells.items():
        frame, where = frames["documents"], f"{name} {cell}"
        human = [list(value) for value in frame["human_summaries"]]
        machine = [list(value) for value in frame["machine_summaries"]]
        relevance = [list(value) for value in frame["relevance"]]
        _check(human, machine, relevance, where)
        ids = item_ids(cell, identify(frames, data.description.main_metric)[1])
        rows = draw(ids, quota[cell], settings.seed, name, *cell, "pool")
        items.append(item_frame(cell, [ids[r] for r in rows]))
        humans.append(_summaries(texts, ids, rows, human))
        machines.append(_summaries(texts, ids, rows, machine, relevance))
    n_available = sum(len(frames["documents"]) for frames in data.cells.values())
    frames_of_pool = {"human": humans, "machine": machines}
    return assemble(data, settings, texts, items, frames_of_pool, {"n_available": n_available})


def identify(frames: Frames, metric: str) -> tuple[list[int], list[str]]:
    """Return the rows of `documents` and what identifies the item in each."""
    documents = frames["documents"]
    names = ("human_summaries", "machine_summaries", "relevance")
    lists = [[list(value) for value in documents[name]] for name in names]
    texts = documents["text"].tolist() if "text" in documents else [""] * len(documents)
    return list(range(len(documents))), content_ids([texts, *lists])


def _check(
    human: list[list[Any]], machine: list[list[Any]], relevance: list[list[Any]], where: str
) -> None:
    for row, (references, summaries, scores) in enumerate(
        zip(human, machine, relevance, strict=True)
    ):
        for column, values in (("human_summaries", references), ("machine_summaries", summaries)):
            wrong = next((value for value in values if not isinstance(value, str)), None)
            if not values or any(not isinstance(value, str) for value in values):
                raise ValueError(
                    f"{where}: row {row}, column {column!r} holds {wrong!r} among {len(values)} "
                    "summaries; expected at least one text"
                )
        if len(summaries) != len(scores):
            raise ValueError(
                f"{where}: row {row} has {len(summaries)} machine summaries but {len(scores)} "
                "relevance scores; expected one score per summary"
            )
        check_numbers(scores, f"relevance of row {row}", where)


def _summaries(
    texts: Texts,
    ids: list[str],
    rows: Any,
    summaries: list[list[str]],
    relevance: list[list[float]] | None = None,
) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "item_id": [ids[r] for r in rows for _ in summaries[r]],
            "text_row": texts.add([text for r in rows for text in summaries[r]]),
        }
    )
    if relevance is not None:
        frame["relevance"] = [float(value) for r in rows for value in relevance[r]]
    return frame
