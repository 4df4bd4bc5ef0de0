"""Lite scores: the lite suite, and each candidate scored on its selected items."""

from __future__ import annotations

import json
import time
from typing import Any

import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.levels import JOINT
from mteblite.calibrations.registry import NEEDS_REFERENCE
from mteblite.calibrations.task_fit import reference_of
from mteblite.calibrations.variant import Variant
from mteblite.lite_scores.intervals import (
    interval_half_widths,
    reference_scores,
    with_reference_range,
)
from mteblite.lite_scores.joint_calibration import JointCalibration
from mteblite.lite_scores.joint_fitting import fit_joint
from mteblite.lite_scores.model_scores import ModelScores, score_model
from mteblite.lite_scores.observing import observation_rows
from mteblite.lite_scores.pair_widths import with_pair_widths
from mteblite.suites.catalog import Suite
from mteblite.suites.task_types import TaskTypes
from mteblite.validation.conformal import LEVEL, check_level
from mteblite_assets.calibrations.assets import selects_for_tokens
from mteblite_assets.embeddings.assets import model_settings
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import SettingsContext, Work
from mteblite_assets.item_parameters.assets import EVIDENCE, evidence_of, evidences_of
from mteblite_assets.lite_scores.observing import Observed, observe_candidate
from mteblite_assets.validation.assets import validation_settings
from mteblite_assets.validation.official_scores import lite_suite_uses_official, official_settings


def _lite_suite_settings(context: SettingsContext) -> Any:
    file = context.suite.file
    official = official_settings(context, lite_suite_uses_official)
    return str(Variant.chosen(file)), file.interval_level, *official


@stage_asset(
    grain=Grain.SUITE,
    deps=[*EVIDENCE, "pool_costs", "item_parameters", "selected_items", "calibrations",
          "lomo_predictions"],
    optional={"public_scores": lite_suite_uses_official, "allocations": selects_for_tokens},
    tables=[
        "lite_scores.lite_suites", "lite_scores.lite_suite_intervals",
        "lite_scores.lite_suite_joint",
    ],
    code_version="5",
    settings=_lite_suite_settings,
    checks=[
        Check(
            "every_task_released_with_its_selection",
            "A task of the lite suite has a selection of the selections stage.",
            "SELECT l.suite, l.task FROM lite_scores.lite_suites l "
            "ANTI JOIN selections.selected_items s USING (suite, task)",
        )
    ],
)  # fmt: skip
def lite_suite(work: Work) -> Produced:
    """One row per (suite, task): selection, item parameters, calibration, interval half-width.

    It has everything that scoring a new model needs; a joint calibration is one row per suite.
    Its data version is the version of the lite suite.
    """
    file, tasks = work.suite.file, work.rows("suites.suite_tasks")
    variant = Variant.chosen(file)
    evidences, _ = evidences_of(work)
    level = file.interval_level or LEVEL
    fitted = {t.task: t for t in _fitted_tasks(work, tasks)}
    joint = None
    if fitted and variant.calibration in JOINT:
        settings = validation_settings(work, evidences)
        calibrated = [e for e in evidences if e.task in fitted]
        joint = fit_joint(calibrated, variant, settings, _counts(work), level)
        fitted = {name: task for name, task in fitted.items() if name in joint.tasks}
    if not fitted:
        raise ValueError(f"no task of suite {work.key['suite']} has a calibration yet")
    types = TaskTypes({t.task: t.task_type for t in fitted.values()}, _parts(work.suite))
    predictions = work.rows("validation.lomo_predictions")
    widths = interval_half_widths(predictions, types, str(variant), level=level)
    joint = None if joint is None else joint.with_widths(widths)
    if file.interval_level is not None:
        check_level(level, int(widths["n_families"].max()))
    widths = with_reference_range(widths, reference_scores(evidences), types)
    widths = with_pair_widths(
        widths, predictions, str(variant), list(fitted.values()), evidences, types, level=level
    )
    rows = _lite_suite_rows(work, fitted, widths, str(variant))
    by_target = widths.set_index("target")
    return Produced(
        {
            "lite_scores.lite_suites": pd.DataFrame(rows),
            "lite_scores.lite_suite_intervals": widths,
            "lite_scores.lite_suite_joint": pd.DataFrame(
                [] if joint is None else [{"joint": joint.to_json()}], columns=["joint"]
            ),
        },
        {
            "tasks": len(rows),
            "left_out": ", ".join(sorted(set(tasks["task"]) - set(fitted))) or "none",
            "items": sum(len(t.selection) for t in fitted.values()),
            "macro_half_width": round(float(by_target["half_width"]["macro"]), 4),
            "interval_method": by_target["interval_method"]["macro"],
            "joint": variant.calibration if joint else "none",
        },
    )


def _lite_suite_rows(
    work: Work, fitted: dict[str, FittedTask], widths: pd.DataFrame, variant: str
) -> list[dict[str, Any]]:
    tasks = work.rows("suites.suite_tasks")
    by_target = widths.set_index("target")
    pools = tasks.set_index("task")["pool_task"]
    hashes = work.rows("pools.shared_pool_stats").set_index("pool_task")["pool_hash"]
    return [
        {
            "task": name,
            "task_type": task.task_type,
            "variant": variant,
            "pool_task": pools[name],
            "pool_hash": hashes[pools[name]],
            "fitted": task.to_json(),
            "half_width": float(by_target["half_width"][f"task:{name}"]),
            "interval_method": by_target["interval_method"][f"task:{name}"],
            "reference_low": task.reference_low,
            "reference_high": task.reference_high,
        }
        for name, task in sorted(fitted.items())
    ]


def _counts(work: Work) -> dict[str, int]:
    """Return K of each task: its allocation where items are selected for tokens, else its size."""
    if selects_for_tokens(work):
        counts = work.rows("selections.allocations").set_index("task")["k"]
    else:
        counts = work.rows("selections.selected_items")["task"].value_counts()
    return {str(task): int(k) for task, k in counts.items()}


def _fitted_tasks(work: Work, tasks: pd.DataFrame) -> list[FittedTask]:
    fitted = []
    for row in tasks.itertuples():

        def mine(table: str, name: str = str(row.task)) -> pd.DataFrame:
            rows = work.rows(table)
            return rows[rows["task"] == name].drop(columns=["suite", "task"])

        stored = mine("calibrations.calibrations")
        if stored.empty:
            continue
        calibration = {str(k): v for k, v in stored.iloc[0].items()}
        items = work.rows("pools.shared_pool_items")
        items = items[items["pool_task"] == row.pool_task].drop(columns="pool_task")
        fitted.append(
            FittedTask.from_tables(
                task=str(row.task),
                task_type=str(row.task_type),
                kind=str(row.kind),
                items=items,
                selection=mine("selections.selected_items"),
                item_parameters=mine("item_parameters.item_parameters"),
                calibration=calibration,
                reference=reference_of(evidence_of(work, str(row.task)))
                if calibration["estimator"] in NEEDS_REFERENCE
                else None,
            )
        )
    return fitted


@stage_asset(
    grain=Grain.SUITE_CANDIDATE,
    deps=["lite_suite"],
    tables=[
        "lite_scores.task_scores",
        "lite_scores.suite_scores",
        "lite_scores.type_scores",
        "lite_scores.selected_observations",
    ],
    code_version="5",
    settings=model_settings,
    kinds=("duckdb", "pytorch"),
    checks=[
        Check(
            "predictions_inside_their_intervals",
            "A predicted score lies between its lower and upper end, where they are known.",
            "SELECT suite, task, model, predicted, lower, upper FROM lite_scores.task_scores "
            "WHERE NOT isnan(lower) AND (predicted < lower - 1e-12 OR predicted > upper + 1e-12)",
        ),
        Check(
            "means_of_all_tasks",
            "The mean of a model is the mean of its task scores; parts of one task count as one.",
            "WITH counted AS (SELECT t.suite, t.model, avg(t.predicted) AS score "
            "FROM lite_scores.task_scores t LEFT JOIN suites.suite_tasks s USING (suite, task) "
            "GROUP BY t.suite, t.model, coalesce(nullif(s.part_of, ''), t.task)) "
            "SELECT s.suite, s.model, s.mean, avg(c.score) AS mean_of_tasks "
            "FROM lite_scores.suite_scores s JOIN counted c USING (suite, model) "
            "GROUP BY ALL HAVING abs(s.mean - avg(c.score)) > 1e-9",
        ),
    ],
)
def lite_scores(work: Work) -> Produced:
    """One row per (suite, task, candidate): predicted full score with interval; and their means.

    Only texts of the selected items are encoded, with the train rows and shared documents that
    they need. With a joint calibration, a task that cannot be scored is predicted from the others
    and marked as not observed. `warnings` says what the scores silently depend on.
    """
    started = time.perf_counter()
    rows = work.rows("lite_scores.lite_suites").sort_values("task")
    fitted = [FittedTask.from_json(str(text)) for text in rows["fitted"]]
    stored = work.rows("lite_scores.lite_suite_joint")
    joint = JointCalibration.from_json(str(stored["joint"].iloc[0])) if len(stored) else None
    seen = observe_candidate(work, rows, fitted, may_fail=joint is not None)
    widths = work.rows("lite_scores.lite_suite_intervals")
    types = TaskTypes({t.task: t.task_type for t in fitted}, _parts(work.suite))
    found = score_model(fitted, seen.results, widths, joint, types, seen.collapsed)
    return _produced(work, found, fitted, seen, time.perf_counter() - started)


def _produced(
    work: Work, found: ModelScores, fitted: list[FittedTask], seen: Observed, seconds: float
) -> Produced:
    types = {t.task: t.task_type for t in fitted}
    summary = {
        **found.suite,
        "type_means": json.dumps(found.score.type_means, sort_keys=True),
        "n_texts": seen.n_texts,
        "n_encoded": seen.n_encoded,
        "seconds": seconds,
        "warnings": "; ".join([*seen.warnings, *found.warnings]),
        "revision": work.ports.models.identify(work.model).revision,
    }
    scores = found.tasks.assign(task_type=found.tasks["task"].map(types))
    scored = [t for t in fitted if t.task in seen.results]
    observations = [observation_rows(t.task, t.selection, seen.results[t.task]) for t in scored]
    table = scores[["task", "predicted", "lower", "upper"]].round(4).to_markdown(index=False)
    return Produced(
        {
            "lite_scores.task_scores": scores,
            "lite_scores.suite_scores": pd.DataFrame([summary]),
            "lite_scores.type_scores": found.types,
            "lite_scores.selected_observations": pd.concat(observations, ignore_index=True),
        },
        {
            "mean": round(found.score.mean, 5),
            "macro_mean": round(found.score.macro_mean, 5),
            "texts": seen.n_texts,
            "encoded_now": seen.n_encoded,
            "warnings": summary["warnings"] or "none",
            "not_scored": "; ".join(f"{t}: {why}" for t, why in seen.failed.items()) or "none",
            "scores": table,
        },
    )


def _parts(suite: Suite) -> dict[str, str]:
    return {entry.task: entry.part_of for entry in suite.tasks}
