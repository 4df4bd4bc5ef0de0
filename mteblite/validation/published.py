"""The table that validation publishes: metrics with intervals, comparisons, optimism, flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mteblite.validation.bootstrap import drawn_intervals, drawn_mean
from mteblite.validation.folds import NESTED
from mteblite.validation.metrics import SUITE_TARGETS, score_matrices, validation_metrics
from mteblite.validation.out_of_range import flag_metrics
from mteblite.validation.targets import combine, target_weights
from mteblite.validation.variants import without_draw

COLUMNS = ["protocol", "variant", "target", "metric", "value", "n_models", "lower", "upper"]
RANDOM = "random/mean"
SAME_FOLDS = {NESTED: "family_lomo"}
"""Protocol -> the protocol of its baselines, which has the same folds."""

Errors = dict[tuple[str, str, str], pd.Series]
"""(protocol, variant, target) -> absolute error of each model, mean over draws."""
NAN = float("nan")


def published_metrics(
    predictions: pd.DataFrame,
    task_types: Mapping[str, str],
    families: Mapping[str, str],
    ranges: pd.DataFrame,
    candidates: Sequence[str] = (),
) -> pd.DataFrame:
    """Return COLUMNS of every protocol, variant and target, sorted.

    Args:
        predictions: see `predict_protocol`.
        task_types: type of every task of the suite.
        families: family of every model; intervals redraw families.
        ranges: protocol, fold, low, high; see `training_ranges`.
        candidates: variants from which the nested protocol chose.

    Returns:
        The metrics of `validation_metrics`; `mae_minus_random` and `share_better_than_random` of
        macro and mean; of macro `out_of_range_flagged`, `out_of_range_false_flags`, and of the
        nested protocol `naive_best_mae` and `optimism` (nested minus naive error).

    Raises:
        ValueError: a predicted task is not in the suite, or there is no task.
    """
    keys = COLUMNS[:4]
    found = validation_metrics(predictions, task_types)
    ends = drawn_intervals(predictions, task_types, families)
    found = found.merge(ends, on=keys, how="left")
    errors = absolute_errors(predictions, task_types)
    extra = [
        *_against_random(errors, families),
        *_optimism(errors, families, candidates),
        *_flag_rows(predictions, task_types, ranges),
    ]
    # An empty frame would change the types of the concatenated columns.
    frames = [found[COLUMNS], *([pd.DataFrame(extra, columns=COLUMNS)] if extra else [])]
    return pd.concat(frames, ignore_index=True).sort_values(keys, ignore_index=True)


def absolute_errors(predictions: pd.DataFrame, task_types: Mapping[str, str]) -> Errors:
    """Return the absolute errors of macro and mean by model."""
    tasks = sorted(task_types)
    weights = target_weights(tasks, task_types)
    sums: dict[tuple[str, str, str], list[pd.Series]] = {}
    for protocol, part in predictions.groupby("protocol", sort=True):
        models = sorted(set(part["model"]))
        for name, (predicted, actual, _) in score_matrices(part, tasks).items():
            for target in SUITE_TARGETS:
                w = weights[target]
                error = pd.Series(np.abs(combine(predicted, w) - combine(actual, w)), index=models)
                sums.setdefault((str(protocol), without_draw(name), target), []).append(error)
    return {key: pd.concat(series, axis=1).mean(axis=1) for key, series in sums.items()}


def _against_random(errors: Errors, families: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """Return the rows of error minus error of random items, with intervals over families."""
    rows: list[tuple[Any, ...]] = []
    for (protocol, variant, target), own in sorted(errors.items()):
        random = errors.get((SAME_FOLDS.get(protocol, protocol), RANDOM, target))
        if random is None or variant == RANDOM:
            continue
        row, drawn = _difference(own, random, families)
        better = float((drawn < 0).mean()) if len(drawn) else NAN
        head = (protocol, variant, target)
        rows.append((*head, "mae_minus_random", *row))
        rows.append((*head, "share_better_than_random", better, row[1], NAN, NAN))
    return rows


def _optimism(
    errors: Errors, families: Mapping[str, str], candidates: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Return the rows of the naive error of the best variant, and of nested minus naive error."""
    rows: list[tuple[Any, ...]] = []
    means = {
        name: float(errors["family_lomo", name, "macro"].mean())
        for name in candidates
        if ("family_lomo", name, "macro") in errors
    }
    known = {name: value for name, value in means.items() if np.isfinite(value)}
    for (protocol, variant, target), own in sorted(errors.items()):
        if protocol != NESTED or target != "macro" or not known:
            continue
        best = min(known, key=lambda name: (known[name], name))
        naive = errors["family_lomo", best, "macro"]
        row, _ = _difference(own, naive, families)
        count = int(naive.notna().sum())
        rows.append((protocol, variant, target, "naive_best_mae", known[best], count, NAN, NAN))
        rows.append((protocol, variant, target, "optimism", *row))
    return rows


def _difference(
    first: pd.Series, second: pd.Series, families: Mapping[str, str]
) -> tuple[tuple[float, int, float, float], np.ndarray]:
    """Return (mean difference, models, lower, upper) of paired errors, and its draws."""
    gap = (first - second).dropna()
    if gap.empty:
        return (NAN, 0, NAN, NAN), np.empty(0)
    cluster = np.array([families[str(m)] for m in gap.index], dtype=object)
    value, low, high, drawn = drawn_mean(gap.to_numpy(dtype=float), cluster)
    return (value, len(gap), low, high), drawn


def _flag_rows(
    predictions: pd.DataFrame, task_types: Mapping[str, str], ranges: pd.DataFrame
) -> list[tuple[Any, ...]]:
    """Return how often models beyond the training range are flagged, and how often others are."""
    rows: list[tuple[Any, ...]] = []
    names = predictions["variant"].map(without_draw)
    once = predictions[predictions["variant"] == names]  # of random baselines the first draw
    for protocol, part in once.groupby("protocol", sort=True):
        known = ranges[ranges["protocol"] == protocol]
        for row in flag_metrics(part, known, task_types).to_dict("records"):
            head = (str(protocol), row["variant"], "macro")
            beyond = (row["flagged"], row["n_beyond"], NAN, NAN)
            inside = (row["false_flags"], row["n_inside"], NAN, NAN)
            rows.append((*head, "out_of_range_flagged", *beyond))
            rows.append((*head, "out_of_range_false_flags", *inside))
    return rows
