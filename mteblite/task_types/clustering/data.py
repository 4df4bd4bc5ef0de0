"""Data of a Clustering task from mteb's loaded task.

mteb draws the documents that it embeds and the bootstraps over them from one `random.Random` that
runs on from cell to cell. So cells are read in mteb's order, and what is drawn here is what mteb
draws for a fresh task object.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from mteblite.pools import items
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.task_types.clustering.pool import bootstrap_rows
from mteblite.task_types.columns import (
    Cell,
    cell_rows,
    column_name,
    cut_rows,
    holder_of,
    require_rows,
    texts_of,
    values_of,
)


def read_cell(task: Any, cell: Cell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return a clustering cell.

    Returns:
        `documents` [text, labels]: all rows, `labels` a list with one label per level; `sampled`:
        the rows that mteb embeds, in its order. The pool repeats mteb's bootstraps from the
        protocol. Legacy tasks: `documents` has a further column `set` (mteb clusters each set
        by itself) and all rows are sampled.
    """
    rows = cell_rows(task, cell)
    require_rows(cell, "document", len(rows))
    text, label = column_name(task, "input_column_name"), task.label_column_name
    if protocol["legacy"]:
        return _legacy(cell, rows, text, label)
    labels = [value if isinstance(value, list) else [value] for value in values_of(rows[label])]
    sampled = _sampled(task.rng_state, len(labels), protocol)
    require_rows(cell, "document in mteb's sample", len(sampled))
    _pass_bootstraps(task.rng_state, [labels[row] for row in sampled], protocol)
    return {
        "documents": pd.DataFrame({"text": texts_of(cell, text, rows[text]), "labels": labels}),
        "sampled": sampled,
    }


def protocol_of(task: Any) -> dict[str, Any]:
    """Return the settings of `AbsTaskClustering`, or of the legacy class, that scores depend on."""
    from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy

    if isinstance(task, AbsTaskClusteringLegacy):
        return _legacy_protocol(task)
    fraction, number = task.max_fraction_of_documents_to_embed, task.max_document_to_embed
    if fraction is not None and number is not None:
        raise ValueError(
            f"{task.metadata.name}: sets both max_document_to_embed {number} and "
            f"max_fraction_of_documents_to_embed {fraction}; mteb allows one of them"
        )
    return {
        "legacy": False,
        "seed": int(task.seed),
        "rng_state": _used_state(task),
        "max_fraction_of_documents_to_embed": fraction,
        "max_document_to_embed": number,
        "max_documents_per_cluster": int(task.max_documents_per_cluster),
        "n_clusters": int(task.n_clusters),
        "k_mean_batch_size": int(task.k_mean_batch_size),
        "max_depth": None if task.max_depth is None else int(task.max_depth),
    }


def cut(task: Any, pool: Pool, data: TaskData, rows: Mapping[items.Cell, list[int]]) -> None:
    """Keep the selected documents, all of which mteb then embeds."""
    if not data.protocol["legacy"]:
        cut_rows(task, pool, data, rows)
        task.max_fraction_of_documents_to_embed = task.max_document_to_embed = None
        return
    from datasets import Dataset

    for (split, subset), selected in rows.items():
        holder = holder_of(task, subset)
        sets = data.cells[split, subset]["documents"]["set"].to_numpy()
        place = {int(s): np.flatnonzero(sets == s)[0] for s in np.unique(sets)}
        kept = {s: [r - place[s] for r in selected if sets[r] == s] for s in place}
        holder[split] = Dataset.from_list(
            [
                {k: [v[int(r)] for r in kept[number]] for k, v in row.items()}
                for number, row in enumerate(holder[split])
                if kept[number]
            ]
        )


def _legacy_protocol(task: Any) -> dict[str, Any]:
    """Defaults of mteb `ClusteringEvaluator`, which takes its batch size from its signature."""
    import inspect

    parameters = inspect.signature(task.evaluator).parameters
    return {
        "legacy": True,
        "seed": 42,
        "k_mean_batch_size": int(parameters["clustering_batch_size"].default),
        "n_init": "auto",
    }


def _legacy(cell: Cell, rows: Any, text: str, label: str) -> dict[str, Any]:
    parts = [
        pd.DataFrame(
            {
                "text": texts_of(cell, text, row[text]),
                "labels": [[value] for value in values_of(row[label])],
                "set": number,
            }
        )
        for number, row in enumerate(rows)
    ]
    documents = pd.concat(parts, ignore_index=True)
    return {"documents": documents, "sampled": list(range(len(documents)))}


def _used_state(task: Any) -> list[Any] | None:
    """JSON form of the generator's state where loading the data has drawn from it, else None."""
    state = task.rng_state.getstate()
    if state == Random(task.seed).getstate():
        return None
    version, internal, gauss = state
    return [version, list(internal), gauss]


def _sampled(generator: Random, n_rows: int, protocol: dict[str, Any]) -> list[int]:
    """Rows that mteb embeds (`AbsTaskClustering._evaluate_subset`)."""
    fraction, number = (
        protocol["max_fraction_of_documents_to_embed"],
        protocol["max_document_to_embed"],
    )
    if fraction is None and number is None:
        return list(range(n_rows))
    wanted = number if fraction is None else int(fraction * n_rows)
    return generator.sample(range(n_rows), k=min(n_rows, wanted))


def _pass_bootstraps(generator: Random, labels: list[list[Any]], protocol: dict[str, Any]) -> None:
    """Move the generator past mteb's `_evaluate_clustering_bootstrapped`, for the next cell."""
    depth = max(map(len, labels))
    if protocol["max_depth"] is not None:
        depth = min(depth, protocol["max_depth"])
    for level in range(depth):
        for _ in bootstrap_rows(generator, _count_with_level(labels, level), protocol):
            pass


def _count_with_level(labels: list[list[Any]], level: int) -> int:
    """How many documents mteb clusters on a level.

    Its marker for "no label here" is -1, which numpy turns into the text "-1" beside text labels;
    such documents then stay in, as a cluster of their own. Kept, because scores depend on it.
    """
    values = np.array([line[level] if len(line) > level else -1 for line in labels])
    return sum(value != -1 for value in values)
