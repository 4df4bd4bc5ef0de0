"""Data of a Clustering task from mteb's loaded task.

mteb draws the documents that it embeds and their bootstraps from one `random.Random` for all
cells. The cells are therefore read in mteb's order, which gives the draws of a fresh task object.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pandas as pd

from mteblite.pools.items import Cell
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.task_types.clustering.pool import bootstrap_rows, label_levels
from mteblite.task_types.columns import (
    TaskCell,
    cell_rows,
    column_name,
    cut_rows,
    require_rows,
    splits_of,
    texts_of,
    values_of,
)


def read_cell(task: Any, cell: TaskCell, protocol: dict[str, Any]) -> dict[str, Any]:
    """Return `documents` [text, labels] and `sampled`.

    `labels` is a list with one label per level; `sampled` are the rows that mteb embeds, in its
    order. In legacy tasks mteb clusters each set by itself: `documents` has a further column `set`,
    and all rows are sampled.
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


def cut(task: Any, pool: Pool, data: TaskData, rows: Mapping[Cell, list[int]]) -> None:
    """Keep the selected documents; mteb then embeds all of them."""
    if not data.protocol["legacy"]:
        cut_rows(task, pool, data, rows)
        task.max_fraction_of_documents_to_embed = task.max_document_to_embed = None
        return
    from datasets import Dataset

    for (split, subset), selected in rows.items():
        splits = splits_of(task, subset)
        sets = data.cells[split, subset]["documents"]["set"].to_numpy()
        place = {int(s): np.flatnonzero(sets == s)[0] for s in np.unique(sets)}
        kept = {s: [r - place[s] for r in selected if sets[r] == s] for s in place}
        splits[split] = Dataset.from_list(
            [
                {k: [v[int(r)] for r in kept[number]] for k, v in row.items()}
                for number, row in enumerate(splits[split])
                if kept[number]
            ]
        )


def _legacy_protocol(task: Any) -> dict[str, Any]:
    """Return the defaults of mteb's `ClusteringEvaluator`; its signature has the batch size."""
    import inspect

    parameters = inspect.signature(task.evaluator).parameters
    return {
        "legacy": True,
        "seed": 42,
        "k_mean_batch_size": int(parameters["clustering_batch_size"].default),
        "n_init": "auto",
    }


def _legacy(cell: TaskCell, rows: Any, text: str, label: str) -> dict[str, Any]:
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
    """Return the generator's state in JSON form if loading the data has used it, else None."""
    state = task.rng_state.getstate()
    if state == Random(task.seed).getstate():
        return None
    version, internal, gauss = state
    return [version, list(internal), gauss]


def _sampled(generator: Random, n_rows: int, protocol: dict[str, Any]) -> list[int]:
    """Return the rows that mteb embeds (`AbsTaskClustering._evaluate_subset`)."""
    fraction = protocol["max_fraction_of_documents_to_embed"]
    number = protocol["max_document_to_embed"]
    if fraction is None and number is None:
        return list(range(n_rows))
    wanted = number if fraction is None else int(fraction * n_rows)
    return generator.sample(range(n_rows), k=min(n_rows, wanted))


def _pass_bootstraps(generator: Random, labels: list[list[Any]], protocol: dict[str, Any]) -> None:
    """Advance the generator as mteb's `_evaluate_clustering_bootstrapped` does."""
    for _, clustered in label_levels(labels, protocol):
        for _ in bootstrap_rows(generator, int(clustered.sum()), protocol):
            pass
