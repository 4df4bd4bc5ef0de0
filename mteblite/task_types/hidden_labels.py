"""Labels of a data set as numbers: a release must not publish the labels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pandas as pd

from mteblite.pools.pool import Pool

LEVEL_SEPARATOR = " > "
"""Joins the labels of an item into its stratum, coarsest level first."""


def label_numbers(strata: Sequence[str]) -> dict[str, str]:
    """Return a name per stratum that consists of its labels' numbers, which sort as the labels do.

    Clusters and labels are counted in this order, and sums of floats depend on the order of their
    terms.
    """
    paths = {stratum: str(stratum).split(LEVEL_SEPARATOR) for stratum in set(strata)}
    names = sorted({label for path in paths.values() for label in path})
    width = len(str(max(len(names) - 1, 0)))
    number = {name: f"label{rank:0{width}d}" for rank, name in enumerate(names)}
    return {
        stratum: LEVEL_SEPARATOR.join(number[label] for label in path)
        for stratum, path in paths.items()
    }


def renamed_strata(items: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Return the items with their strata renamed as in `label_numbers`."""
    return items.assign(stratum=items["stratum"].map(names))


def renamed_labels(pool: Pool, names: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """Return a pool's frames with labels renamed as in `label_numbers`.

    Only a frame `documents` holds labels, as JSON lists.
    """
    frames = dict(pool.frames)
    if "documents" in frames and "labels" in frames["documents"].columns:
        stratum = dict(zip(pool.items["item_id"], pool.items["stratum"], strict=True))
        labels = [
            json.dumps(names[stratum[item]].split(LEVEL_SEPARATOR))
            for item in frames["documents"]["item_id"]
        ]
        frames["documents"] = frames["documents"].assign(labels=labels)
    return frames
