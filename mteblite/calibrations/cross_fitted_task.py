"""Cross-fitted raw estimates of one task's reference models."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mteblite.calibrations.cross_fitting import cross_fitted
from mteblite.calibrations.registry import (
    SET_STATISTIC,
    Statistic,
    estimate_set,
    find_set_estimator,
)
from mteblite.calibrations.training_fit import TrainingFit
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.item_parameters.fitting import restrict, usable_models
from mteblite.task_types.scoring import set_statistic


def cross_fitted_estimates(
    evidence: TaskEvidence,
    selection: str,
    estimator: str,
    k: int,
    rng_keys: tuple[str | int, ...],
    *,
    response_model: str = "auto",
    statistic: Statistic = set_statistic,
    costs: np.ndarray | None = None,
) -> np.ndarray:
    """Return raw estimates of the models with a full score and outcomes, each by a fit without it.

    Every inner fold standardises, fits and selects anew without a group of families; items differ
    between folds, as they will for a new model between releases.

    Args:
        evidence: reference models.
        selection: selector.
        estimator: see `calibrate_task`.
        k: items to select.
        rng_keys: stable keys of the random draws.
        response_model: see `fit_items`.
        statistic: the official set statistic.
        costs: tokens of each item, where items are chosen for tokens; see `choose`.
    """
    reference = restrict(evidence, usable_models(evidence))

    def statistics(positions: np.ndarray, weights: np.ndarray, name: str) -> np.ndarray:
        function = statistic if name == SET_STATISTIC else find_set_estimator(name)
        return statistics_of(reference, positions, weights, function)

    def raw(train: np.ndarray) -> np.ndarray:
        fit = TrainingFit(reference, train, k, rng_keys, statistics, response_model, costs)
        return fit.raw(selection, estimator)

    return cross_fitted(raw, np.ones(len(reference.models), dtype=bool), reference.families)


def statistics_of(
    evidence: TaskEvidence, positions: np.ndarray, weights: np.ndarray, statistic: Statistic
) -> np.ndarray:
    """Return a set statistic of every model on a selection (n_models,).

    Raises:
        ValueError: the task has no observations.
    """
    if evidence.observations is None:
        raise ValueError(f"{evidence.task}: a set metric needs observations, there are none")
    rows = evidence.items.iloc[positions].reset_index(drop=True)
    return np.array(
        [
            estimate_set(evidence.task_type, o[positions], rows, weights, statistic=statistic)
            for o in evidence.observations
        ]
    )


def observed_on(evidence: TaskEvidence, selection: pd.DataFrame) -> list[np.ndarray]:
    """Return each model's outcomes (k,) or observations (k, d) on a selection."""
    place = pd.Series(np.arange(len(evidence.items)), index=evidence.items["item_id"])
    positions = place[selection["item_id"]].to_numpy()
    if evidence.kind == "per_item":
        return list(evidence.outcomes[:, positions])
    if evidence.observations is None:
        raise ValueError(f"{evidence.task}: a set metric needs observations, there are none")
    return [np.asarray(model)[positions] for model in evidence.observations]
