"""The surrogate of V-measure, and the check of selections on which V-measure is always 1."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.outcomes.areas import weighted_auc
from mteblite.outcomes.cells import cells_of, facts_of, mean_of_cells
from mteblite.task_types.hidden_labels import LEVEL_SEPARATOR


def surrogate(observations: np.ndarray, items: pd.DataFrame, weights: np.ndarray) -> float:
    """Return the share of (same-label, other-label) pairs of documents that cosine orders rightly.

    It is the area under the ROC curve, weighted by the products of weights. It needs few labels
    with several documents each, which the selectors give. It is NaN where a cell has one label
    only, or another label for every document.
    """
    values, mass = np.asarray(observations, dtype=float), np.asarray(weights, dtype=float)
    labels = facts_of(items, _labels)
    return mean_of_cells([_same_label_auc(values[r], labels[r], mass[r]) for r in cells_of(items)])


def check_not_degenerate(items: pd.DataFrame) -> None:
    """Refuse a selection on which V-measure is 1 for every model.

    Args:
        items: (k rows) of the selected items: hf_subset, split, stratum.

    Raises:
        ValueError: a cell has several documents, each of another label.
    """
    for rows in cells_of(items):
        # With hierarchical labels, documents share labels of the top level first.
        labels = [str(s).split(LEVEL_SEPARATOR)[0] for s in items["stratum"].to_numpy()[rows]]
        if len(labels) > 1 and len(set(labels)) == len(labels):
            raise ValueError(
                f"the {len(labels)} selected documents have {len(labels)} different labels: "
                "V-measure is then 1 for every model; raise k, or select with strat or anchorset, "
                "which take several documents of few labels"
            )


def _same_label_auc(observations: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    size = np.linalg.norm(observations, axis=1, keepdims=True)
    unit = observations / np.maximum(size, 1e-12)
    first, second = np.triu_indices(len(labels), 1)
    similarity = (unit @ unit.T)[first, second]
    return weighted_auc(
        similarity, labels[first] == labels[second], weights[first] * weights[second]
    )


def _labels(items: pd.DataFrame) -> np.ndarray:
    return np.unique(items["stratum"].astype(str).to_numpy(), return_inverse=True)[1]
