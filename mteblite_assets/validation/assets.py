"""Validation: every family held out in turn, every variant, against random and whole pool."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from mteblite_assets.calibrations.variant import Variant
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import Work
from mteblite_assets.item_parameters.assets import EVIDENCE, evidence_of
from mteblite_assets.suites.suite_file import SuiteFile
from mteblite_assets.suites.task_types import task_types
from mteblite_assets.validation.folds import fold_members
from mteblite_assets.validation.lomo import predict_held_out
from mteblite_assets.validation.metrics import validation_metrics as compute_metrics
from mteblite_assets.validation.refit import TaskRefits
from mteblite_assets.validation.variants import suite_variants

PROTOCOLS = ("family_lomo", "model_lomo")


@stage_asset(
    grain=Grain.SUITE,
    # The calibrations are not read: each fold makes its own. They are named so that the graph
    # shows what is validated, and a change of method validates again.
    deps=[*EVIDENCE, "calibrations"],
    tables=["validation.lomo_predictions", "validation.lomo_folds"],
    code_version="1",
    checks=[
        Check(
            "held_out_family_absent_from_its_fit",
            "No model of a held-out family trains the fold that predicts it.",
            "SELECT t.suite, t.protocol, t.fold, t.model, t.family FROM validation.lomo_folds t "
            "JOIN validation.lomo_folds h USING (suite, protocol, fold) "
            "WHERE NOT t.held_out AND h.held_out AND t.protocol = 'family_lomo' "
            "AND t.family = h.family",
        ),
        Check(
            "predicted_models_held_out",
            "A prediction is for a model that its fold held out.",
            "SELECT p.suite, p.protocol, p.fold, p.model FROM validation.lomo_predictions p "
            "JOIN validation.lomo_folds f USING (suite, protocol, fold, model) "
            "WHERE NOT f.held_out",
        ),
    ],
)
def lomo_predictions(work: Work) -> Produced:
    """One row per (suite, protocol, variant, fold, model, task): predicted and actual score.

    For every family (and for every single model) items are fitted, selected and calibrated
    without it, then its models are predicted; baselines are random items and the whole pool.
    """
    tasks = work.rows("suites.suite_tasks")
    evidences, left_out = [], []
    for name in tasks["task"]:
        try:
            evidences.append(evidence_of(work, name))
        except ValueError as error:
            left_out.append(f"{name}: {error}")
    if not evidences:
        raise ValueError("; ".join(left_out))
    k_by_task = {t: int(k) for t, k in zip(tasks["task"], tasks["k"], strict=True)}
    seed = work.suite.file.pool.seed
    variants = suite_variants([chosen_variant(work.suite.file)])
    refits: dict[str, TaskRefits] = {}
    frames = [
        predict_held_out(
            evidences,
            variants,
            k_by_task,
            protocol,
            seed,
            progress=_progress(work, protocol),
            refits=refits,
        )
        for protocol in PROTOCOLS
    ]
    predictions = pd.concat(frames, ignore_index=True)
    folds = pd.concat([fold_members(evidences, p) for p in PROTOCOLS], ignore_index=True)
    return Produced(
        {"validation.lomo_predictions": predictions, "validation.lomo_folds": folds},
        {
            "tasks": len(evidences),
            "left_out": "; ".join(left_out) or "none",
            "variants": predictions["variant"].nunique(),
            "folds": folds.groupby("protocol")["fold"].nunique().to_dict().__repr__(),
        },
    )


@stage_asset(
    grain=Grain.SUITE,
    deps=["suite_tasks", "lomo_predictions"],
    tables=["validation.validation_metrics"],
    code_version="1",
    checks=[
        Check(
            "errors_not_negative",
            "Mean absolute errors are finite and at least 0.",
            "SELECT * FROM validation.validation_metrics "
            "WHERE metric = 'mae' AND value IS NOT NULL AND (value < 0 OR NOT isfinite(value))",
        )
    ],
)
def validation_metrics(work: Work) -> Produced:
    """One row per (suite, protocol, variant, target, metric): MAE, Kendall tau-b, Pearson ...

    For the macro mean, the mean and each task; NaN where a metric is not defined.
    """
    tasks = work.rows("suites.suite_tasks")
    types = task_types(tasks)
    rows = compute_metrics(work.rows("validation.lomo_predictions"), types)
    macro = rows[(rows["protocol"] == "family_lomo") & (rows["target"] == "macro")]
    table = macro.pivot_table(index="variant", columns="metric", values="value")
    return Produced(
        {"validation.validation_metrics": rows},
        {"rows": len(rows), "macro (family_lomo)": table.round(4).to_markdown()},
    )


def _progress(work: Work, protocol: str) -> Callable[[int, int], None]:
    return lambda done, total: work.progress(f"{protocol}: {done} of {total} tasks")


def chosen_variant(file: SuiteFile) -> Variant:
    """Return the variant that the suite file chose."""
    return Variant(file.per_item.selection, file.per_item.estimator, file.set_metric.selection)
