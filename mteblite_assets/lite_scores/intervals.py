"""Half-widths of the intervals around lite scores, from held-out residuals by family."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from mteblite_assets.validation.conformal import LEVEL, half_width
from mteblite_assets.validation.metrics import score_matrices
from mteblite_assets.validation.targets import combine, target_weights

PROTOCOL = "family_lomo"


def interval_half_widths(
    predictions: pd.DataFrame,
    task_types: Mapping[str, str],
    variant: str,
    *,
    level: float = LEVEL,
    protocol: str = PROTOCOL,
) -> pd.DataFrame:
    """Return the half-width of every target of a suite.

    Args:
        predictions: held-out predictions, as `predict_held_out` returns them.
        task_types: type of every task of the suite.
        variant: the variant that lite scores are made with.
        level: coverage.
        protocol: whose folds are the families.

    Returns:
        One row per target (`macro`, `mean`, `type:<type>`, `task:<name>`): target, half_width
        (NaN with under 2 families), interval_method (`conformal_family`; `student_t` where the
        families are too few for the level; `none`), n_families, level.

    Raises:
        ValueError: there are no held-out predictions of the variant.
    """
    chosen = (predictions["protocol"] == protocol) & (predictions["variant"] == variant)
    if not chosen.any():
        known = ", ".join(sorted(set(predictions["variant"]))) or "none"
        raise ValueError(f"no {protocol} predictions of variant {variant!r}; there are: {known}")
    tasks = sorted(task_types)
    predicted, actual, folds = score_matrices(predictions.loc[chosen], tasks)[variant]
    rows: list[dict[str, object]] = []
    for target, weights in target_weights(tasks, task_types, with_types=True).items():
        residuals = combine(predicted, weights) - combine(actual, weights)
        width = half_width(residuals, folds, level)
        rows.append(
            {
                "target": target,
                "half_width": width.value,
                "interval_method": width.method,
                "n_families": width.n_families,
                "level": level,
            }
        )
    return pd.DataFrame(rows)
