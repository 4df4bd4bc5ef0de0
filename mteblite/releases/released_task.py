"""One task of a released lite suite: its selection, and the pool to rebuild its items.

A released task holds no text and no label. It holds hashes of texts, and numbers of labels in the
labels' order. With the task's data the items can be rebuilt, and a model's scores on them equal
those of the suite's warehouse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.pools.pool import Pool
from mteblite.pools.restriction import restrict
from mteblite.pools.task_data import TaskData
from mteblite.pools.text_hashes import hashes_by_item, with_texts, without_texts
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.hidden_labels import label_numbers, renamed_labels, renamed_strata
from mteblite.task_types.identities import item_rows, texts_of
from mteblite.task_types.registry import find_type


@dataclass(frozen=True)
class ReleasedTask:
    """A task as a release holds it.

    Attributes:
        description: mteb's definition of the task, with the revision of its data; without the path
            of a user's own data.
        fitted: selection, item parameters and calibration.
        pool: the pool restricted to the selection, without texts.
        pool_hash: hash of the whole pool that the selection was drawn from.
    """

    description: TaskDescription
    fitted: FittedTask
    pool: Pool
    pool_hash: str

    @property
    def task(self) -> str:
        """The task's name."""
        return self.description.task


def release_task(
    description: TaskDescription, fitted: FittedTask, pool: Pool, pool_hash: str
) -> ReleasedTask:
    """Return a task for a release; `pool` is the whole pool, with texts.

    Raises:
        ValueError: an item of the selection is not in the pool, or an id of the pool is a text.
    """
    cut = restrict(pool, fitted.selection["item_id"].tolist())
    if find_type(description.task_type).strata_are_labels:
        names = label_numbers([*fitted.items["stratum"], *cut.items["stratum"]])
        fitted = replace(fitted, items=renamed_strata(fitted.items, names))
        items, frames = renamed_strata(cut.items, names), renamed_labels(cut, names)
        cut = replace(cut, items=items, frames=frames)
    return ReleasedTask(replace(description, path=None), fitted, without_texts(cut), pool_hash)


def rebuild_pool(released: ReleasedTask, data: TaskData) -> Pool:
    """Return the pool of a released selection, with texts, from the task's data.

    It equals the whole pool after `restrict`, except for the names of labels.

    Raises:
        ValueError: an item or a text of the selection is not in the data; names task, item and
            revision.
    """
    there = item_rows(data)
    revision = data.description.dataset_revision
    items = released.fitted.selection["item_id"].tolist()
    lost = [item for item in items if item not in there]
    if lost:
        raise ValueError(
            f"{released.task}: item {lost[0]!r} is not in the data at revision {revision!r} "
            f"({len(lost)} of {len(items)} selected items are missing): its text or gold value has "
            "changed since the selection was released; load the released revision, "
            f"{released.description.dataset_revision!r}, or export a new release"
        )
    return with_texts(released.pool, texts_of(data, released.pool), revision)


def items_table(released: ReleasedTask) -> pd.DataFrame:
    """Return one row per selected item, in rank order.

    Columns: item_id, hf_subset, split, rank, weight, pool_weight, stratum, gold, response_model,
    slope, intercept, residual_sd, n_models, text_sha256 (list: hashes of the item's own texts).
    """
    fitted = released.fitted
    parameters = ["response_model", "slope", "intercept", "residual_sd", "n_models"]
    table = fitted.selection[["item_id", "rank", "weight"]].merge(
        fitted.items.drop(columns="pool_task", errors="ignore"), on="item_id", how="left"
    )
    known = [c for c in parameters if c in fitted.item_parameters.columns]
    table = table.merge(fitted.item_parameters[["item_id", *known]], on="item_id", how="left")
    hashes = hashes_by_item(released.pool)
    table["text_sha256"] = [hashes[item] for item in table["item_id"]]
    order = ["item_id", "hf_subset", "split", "rank", "weight", "pool_weight", "stratum", "gold"]
    table = table.sort_values("rank", ignore_index=True)
    return table.astype({"rank": "int64", "weight": float, "pool_weight": float, "gold": float})[
        [*order, *known, "text_sha256"]
    ]
