"""Detection of models beyond the range of their fold's training models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mteblite.item_parameters.evidence import TaskEvidence, types_of
from mteblite.validation.folds import family_by_model, make_folds, mean_scores
from mteblite.validation.targets import combine, macro_weights


def training_ranges(evidences: Sequence[TaskEvidence], protocol: str) -> pd.DataFrame:
    """Return the range of the training models' macro means: fold, low, high; NaN where unknown.

    Models that lack a task of the suite do not count.
    """
    tasks = sorted(e.task for e in evidences)
    types = types_of(evidences)
    scores = {e.task: dict(zip(e.models, e.full_scores, strict=True)) for e in evidences}
    families = family_by_model(evidences)
    models = sorted(families)
    matrix = np.array([[scores[t].get(m, np.nan) for t in tasks] for m in models])
    macro = combine(matrix, macro_weights(tasks, types))
    rows = []
    for fold in make_folds(protocol, families, mean_scores(evidences)):
        train = np.array([fold.trains(m) for m in models]) & np.isfinite(macro)
        ends = (macro[train].min(), macro[train].max()) if train.any() else (np.nan, np.nan)
        rows.append((fold.name, *ends))
    return pd.DataFrame(rows, columns=["fold", "low", "high"])


def flag_metrics(
    rows: pd.DataFrame, ranges: pd.DataFrame, types: Mapping[str, str]
) -> pd.DataFrame:
    """Return how often models beyond the training range are flagged, by variant.

    A model is flagged where its predicted macro mean is beyond those of all training models. The
    rows are predictions of one protocol, and the ranges its `training_ranges`.

    Returns:
        variant, n_beyond, flagged (share of those beyond), n_inside, false_flags (share of those
        inside); NaN without such models.
    """
    ranges = ranges.set_index("fold")
    tasks = sorted(types)
    weights = pd.Series(macro_weights(tasks, types), index=tasks)
    mass = rows["task"].map(weights)
    parts = rows.assign(
        predicted=rows["predicted"] * mass, actual=rows["actual"] * mass, weight=mass
    )
    keys = ["variant", "fold", "model"]
    # A task without a prediction makes the macro mean undefined.
    known = parts.dropna(subset=["predicted", "actual"])
    sums = known.groupby(keys)[["predicted", "actual", "weight"]].sum()
    sums = sums[np.isclose(sums["weight"], 1.0)].reset_index()
    low, high = (sums["fold"].map(ranges[end]).to_numpy() for end in ("low", "high"))
    for column in ("predicted", "actual"):
        values = sums[column].to_numpy()
        sums[f"{column}_beyond"] = (values < low) | (values > high)
    found = []
    for variant, part in sums.groupby("variant", sort=True):
        beyond, flagged = part["actual_beyond"], part["predicted_beyond"]
        found.append(
            {
                "variant": variant,
                "n_beyond": int(beyond.sum()),
                "flagged": float(flagged[beyond].mean()) if beyond.any() else float("nan"),
                "n_inside": int((~beyond).sum()),
                "false_flags": float(flagged[~beyond].mean()) if (~beyond).any() else float("nan"),
            }
        )
    return pd.DataFrame(found)
