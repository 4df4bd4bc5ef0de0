"""Half-widths of differences of two models, from pairs of held-out models.

The error of a difference has parts that redrawing items does not show: the error of the
calibration, and what the pool differs from the full task. Pairs of held-out models show all of it
(docs/methods.md, Paired differences). Their errors are divided by a scale that is known for every
pair: the spread of their difference over redrawn items, and a floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.lite_scores.redraws import redraw_variance, redrawn
from mteblite.suites.method_keys import INTERVALS_FROM
from mteblite.validation.conformal import LEVEL, families_needed, half_width
from mteblite.validation.metrics import score_matrices
from mteblite.validation.targets import combine, target_weights

COLUMNS = ["pair_sd", "stranger_factor", "sibling_factor", "sibling_families"]
FLOOR = 0.25
"""Share of the usual variance over redrawn items that every pair has at least."""
MIN_SD = 1e-3
"""Least usual spread: a selection of the whole pool has none, but its calibration errs."""
STRANGERS = "strangers"
SIBLINGS = "siblings"
FEW_SIBLINGS = "few_siblings"
SCORES = "scores"


def with_pair_widths(
    widths: pd.DataFrame,
    predictions: pd.DataFrame,
    variant: str,
    fitted: Sequence[FittedTask],
    evidences: Sequence[TaskEvidence],
    task_types: Mapping[str, str],
    *,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Add what the half-widths of differences are made of: COLUMNS.

    Two models of one family are siblings, others strangers. The held-out difference of strangers
    comes from two folds, whose selections and calibrations differ a little, so its error is rather
    too large than too small.

    Args:
        widths: from `interval_half_widths`, one row per target.
        predictions: held-out predictions of all variants.
        variant: the variant of the lite scores.
        fitted: the suite's tasks.
        evidences: the reference models on these tasks, and possibly on others.
        task_types: type of every task of the suite.
        level: coverage.

    Returns:
        The widths with the columns pair_sd (usual spread over redrawn items of the difference of
        two strangers), stranger_factor and sibling_factor (half-widths in units of `pair_scale`;
        NaN = unknown), sibling_families (held-out families with two models or more).
    """
    chosen = (predictions["protocol"] == INTERVALS_FROM) & (predictions["variant"] == variant)
    part = predictions.loc[chosen & predictions["task"].isin(task_types)]
    tasks, models = sorted(task_types), sorted(set(part["model"]))
    held_out = score_matrices(part, tasks).get(variant)
    if held_out is None or len(models) < 2:
        return widths.assign(**dict.fromkeys(COLUMNS[:3], float("nan")), sibling_families=0)
    predicted, actual, folds = held_out
    one, two = np.triu_indices(len(models), 1)
    kin = folds[one] == folds[two]
    by_task, evidence = {t.task: t for t in fitted}, {e.task: e for e in evidences}
    variances = np.column_stack(
        [_variances(by_task[task], evidence[task], models)[one, two] for task in tasks]
    )
    mass = _mass(folds, one, two)
    usual = np.array([_usual(v[~kin], mass[~kin]) for v in variances.T])
    rows = {}
    for target, weights in target_weights(tasks, task_types, with_types=True).items():
        error = combine(predicted, weights) - combine(actual, weights)
        scale = pair_scale(combine(variances, weights**2), float(usual @ weights**2))
        scaled = (error[one] - error[two]) / scale
        siblings = half_width(scaled[kin], folds[one][kin], level)
        rows[target] = (
            float(np.sqrt(usual @ weights**2)),
            _stranger_factor(scaled[~kin], mass[~kin], folds[np.isfinite(error)], level),
            siblings.value,
            siblings.n_families,
        )
    found = pd.DataFrame.from_dict(rows, orient="index", columns=COLUMNS)
    return widths.join(found, on="target")


def pair_scale(variance: float | np.ndarray, usual: float) -> np.ndarray:
    """Return the scale of a difference from its variance over redrawn items and the usual one."""
    return np.sqrt(np.asarray(variance) + FLOOR * usual)


def pair_half_width(
    row: Mapping[str, float], variance: float, *, siblings: bool
) -> tuple[float, str]:
    """Return the half-width of the difference of two models on a target, and its method.

    Args:
        row: half_width, level and COLUMNS of the target; an earlier version has no COLUMNS.
        variance: of the difference over redrawn items.
        siblings: whether both models are of one family.

    Returns:
        The half-width (NaN = unknown) and `strangers`, `siblings`, `few_siblings` (siblings, but
        too few families show how they differ: at least what a usual pair of strangers has) or
        `scores` (no held-out pairs: two independent scores).
    """
    strangers, own, usual = (float(row.get(c, np.nan)) for c in (*COLUMNS[1:3], COLUMNS[0]))
    if not np.isfinite(strangers):
        return float(np.sqrt(2.0) * row["half_width"]), SCORES
    scale = float(pair_scale(variance, usual**2))
    if not siblings:
        return strangers * scale, STRANGERS
    if row["sibling_families"] >= families_needed(row["level"]):
        return own * scale, SIBLINGS
    wider = strangers * max(scale, float(pair_scale(usual**2, usual**2)))
    return float(np.nanmax([wider, own * scale])), FEW_SIBLINGS


def _variances(task: FittedTask, evidence: TaskEvidence, models: Sequence[str]) -> np.ndarray:
    """Return the variances (n_models, n_models) of differences over redrawn items, NaN = unknown.

    They are those of the released selection, which the models helped to choose.
    """
    ids = {item: i for i, item in enumerate(evidence.items["item_id"])}
    places = np.array([ids[item] for item in task.selection["item_id"]])
    there = {model: i for i, model in enumerate(evidence.models)}
    known = [i for i, model in enumerate(models) if model in there]
    seen = evidence.outcomes if evidence.observations is None else evidence.observations
    scores = redrawn(task, [np.asarray(seen[there[models[i]]])[places] for i in known])
    found = np.full((len(models), len(models)), np.nan)
    for place, i in enumerate(known):
        for other, j in enumerate(known[:place]):
            found[i, j] = found[j, i] = redraw_variance(scores[place], scores[other])
    return found


def _mass(folds: np.ndarray, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Return the weight (n_pairs,) of each pair: two families count once, whatever their size."""
    code = np.unique(folds.astype(str), return_inverse=True)[1]
    size = np.bincount(code)[code]
    return np.asarray(1.0 / (size[one] * size[two]))


def _usual(variances: np.ndarray, mass: np.ndarray) -> float:
    """Return the mean variance over pairs, at least that of MIN_SD."""
    known = np.isfinite(variances)
    mean = float(np.average(variances[known], weights=mass[known])) if known.any() else 0.0
    return max(mean, MIN_SD**2)


def _stranger_factor(
    scaled: np.ndarray, mass: np.ndarray, families: np.ndarray, level: float
) -> float:
    """Return the half-width of scaled differences of strangers; NaN with under two families.

    The mean square over pairs of n independent families is twice their variance on n - 1 degrees
    of freedom, because a common bias cancels, so that a Student-t quantile needs no correction.
    """
    from scipy.special import stdtrit

    known = np.isfinite(scaled)
    n = len(set(families))
    if n < 2 or not known.any():
        return float("nan")
    square = float(np.average(scaled[known] ** 2, weights=mass[known]))
    return float(stdtrit(n - 1, 0.5 + level / 2.0) * np.sqrt(square))
