"""Suites: the tasks of each suite, resolved against mteb, and its models."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pandas as pd

from mteblite.suites.catalog import Suite, TaskEntry
from mteblite.suites.resolution import description_to_json
from mteblite.suites.suite_model import SuiteModel
from mteblite.task_types.registry import TYPE_FACTS, task_kind, type_facts, type_names
from mteblite_assets.graph.content import content_version
from mteblite_assets.graph.declaration import Check, Produced, stage_asset
from mteblite_assets.graph.keys import Grain
from mteblite_assets.graph.work import SettingsContext, Work

NOT_IN_ROWS = {
    "models", "description", "calibration", "response_model", "preset", "allocation",
    "token_budget", "interval_level", "validation",
}  # fmt: skip
"""Keys of a suite file that only other stages read, and that are among their settings."""

NOT_CONTENT = ["k", "selection", "estimator", "dataset_revision", "mteb_version"]
"""Columns of `suite_tasks` that are not part of its data version.

Methods are settings of the stages that use them. New data of one task change only its row of
`resolved_tasks`. A new version of mteb with equal tasks changes nothing.
"""


def _suite_settings(context: SettingsContext) -> Any:
    file = context.suite.file
    revisions = [e.description.dataset_revision for e in context.suite.tasks if e.description]
    asked = file.model_dump(exclude=NOT_IN_ROWS)
    left_out = [x.task for x in context.suite.left_out]
    return asked, revisions, left_out, context.ports.tasks.mteb_version


@stage_asset(
    grain=Grain.SUITE,
    tables=[
        "suites.suite_tasks",
        "suites.left_out_tasks",
        "suites.mteb_differences",
        "suites.suite_facts",
    ],
    code_version="4",
    settings=_suite_settings,
    kinds=("duckdb", "yaml"),
    checks=[
        Check(
            "task_types_supported",
            "Every task of every suite has a type that mteblite scores.",
            "SELECT suite, task, task_type FROM suites.suite_tasks WHERE NOT supported",
        ),
        Check(
            "tasks_are_as_frozen",
            "The installed mteb has the tasks as they were frozen; only "
            "`mteblite tasks --suite NAME --refresh` accepts a difference.",
            "SELECT suite, task, what, frozen, found, mteb_version FROM suites.mteb_differences",
        ),
    ],
)
def suite_tasks(work: Work) -> Produced:
    """One row per (suite, task): type, main metric, split, subsets, K, selection and estimator.

    Facts of the type are columns for SQL: its lowest score and outcome, and whether the mean
    outcome is the score. Task lists, splits and subsets come from mteb's benchmark or task objects
    (or the user's files) and are frozen with mteb's version. `suites.mteb_differences` has the
    differences of another installed version. `suites.left_out_tasks` has the tasks that cannot
    take part, with the reason.
    """
    suite = work.ports.tasks.resolve(work.suite)
    rows = pd.DataFrame([_task_row(suite, entry) for entry in suite.tasks])
    tables = {
        "suites.suite_tasks": rows,
        "suites.left_out_tasks": pd.DataFrame([asdict(x) for x in suite.left_out]),
        "suites.mteb_differences": _differences(work, suite),
        "suites.suite_facts": _facts(suite),
    }
    content = rows.drop(columns=[*NOT_CONTENT, *TYPE_FACTS])
    # The pool of own data is named by their content, which is no matter of the other tasks.
    own = [entry.request.path is not None for entry in suite.tasks]
    content.loc[own, "pool_task"] = content.loc[own, "task"]
    version = content_version({"suites.suite_tasks": content})
    return Produced(tables, _shown(tables), version=version)


def _shown(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    left_out = tables["suites.left_out_tasks"]
    types = tables["suites.suite_tasks"]["task_type"].value_counts()
    return {
        "tasks": len(tables["suites.suite_tasks"]),
        "types": ", ".join(f"{t} {n}" for t, n in types.items()),
        "left_out": ", ".join(left_out["task"]) if len(left_out) else "none",
        "differences": len(tables["suites.mteb_differences"]),
    }


def _task_row(suite: Suite, entry: TaskEntry) -> dict[str, Any]:
    description = entry.description
    if description is None:
        raise ValueError(f"{entry.suite_task} is not resolved yet")
    kind = task_kind(description.task_type)
    methods = suite.file.per_item if kind == "per_item" else suite.file.set_metric
    return {
        "task": entry.task,
        "task_type": description.task_type,
        "main_metric": description.main_metric,
        "split": ",".join(description.splits),
        "hf_subsets": list(description.hf_subsets),
        "k": entry.k,
        "estimator": methods.estimator,
        "kind": kind,
        "selection": methods.selection,
        "pool_task": entry.pool_task,
        "dataset_revision": description.dataset_revision,
        "mteb_version": entry.frozen_with,
        "max_tokens": suite.file.max_tokens,
        "part_of": entry.part_of,
        "supported": description.task_type in type_names(),
        **type_facts(description.task_type, description.main_metric),
    }


def _differences(work: Work, suite: Suite) -> pd.DataFrame:
    rows = pd.DataFrame([asdict(d) for d in work.ports.tasks.mteb_differences(suite)])
    return rows.assign(mteb_version=work.ports.tasks.mteb_version) if len(rows) else rows


def _facts(suite: Suite) -> pd.DataFrame:
    row = {
        "benchmark": suite.file.benchmark,
        "headline": suite.file.headline,
        "n_tasks": len(suite.tasks),
        "n_left_out": len(suite.left_out),
    }
    return pd.DataFrame([row])


def _members(context: SettingsContext) -> Any:
    return [(m.name, m.family) for m in context.suite.references()]


@stage_asset(
    grain=Grain.SUITE,
    tables=["suites.roster"],
    code_version="1",
    settings=_members,
    checks=[
        Check(
            "one_family_each",
            "A reference model is listed once per suite, with one family.",
            "SELECT suite, model, count(*) AS n FROM suites.roster "
            "GROUP BY ALL HAVING count(*) > 1",
        )
    ],
)
def roster(work: Work) -> Produced:
    """One row per (suite, reference model): the members of the fits, with their families.

    A partition mapping cannot express which models a fit uses, so membership is an asset. A new or
    removed reference model changes its data version; a candidate does not.
    """
    rows = pd.DataFrame(_members(work), columns=["model", "family"])
    facts = {"models": len(rows), "families": rows["family"].nunique()}
    return Produced({"suites.roster": rows}, facts)


MODEL_COLUMNS = ["model", "family", "role", "source", "provenance"]


def _registered(context: SettingsContext) -> Any:
    return [
        (m.name, m.family, m.role, _source_of(m), m.provenance)
        for m in sorted(context.suite.models, key=lambda m: m.name)
    ]


def _source_of(model: SuiteModel) -> str:
    if not model.has_weights:
        return "absent"
    if model.name.startswith("package:"):
        return "package"
    return "local" if model.path else "hub"


@stage_asset(
    grain=Grain.SUITE,
    tables=["suites.registered_models"],
    code_version="1",
    settings=_registered,
    kinds=("duckdb", "yaml"),
)
def registered_models(work: Work) -> Produced:
    """One row per (suite, model): the registered references and candidates.

    Views and reports show only these models.
    """
    rows = pd.DataFrame(_registered(work), columns=MODEL_COLUMNS)
    roles = {str(role): int(n) for role, n in rows["role"].value_counts().items()}
    return Produced({"suites.registered_models": rows}, roles)


def _description(context: SettingsContext) -> Any:
    description = context.entry.description
    if description is None:
        return None
    row = description_to_json(description)
    if description.path is not None:  # own data count by their content, not by their place
        del row["path"]
    return row


@stage_asset(
    grain=Grain.POOL_TASK,
    deps=["suite_tasks"],
    tables=["suites.resolved_tasks"],
    code_version="1",
    settings=_description,
)
def resolved_tasks(work: Work) -> Produced:
    """One row per pool_task: the task as mteb defines it, independent of the suite.

    A changed K, selection or estimator changes no row here, so pools stay fresh.
    """
    row = description_to_json(work.ports.tasks.describe(work.entry))
    kept = {k: v for k, v in row.items() if k not in ("path", "metrics")}
    kept = {k: list(v) if isinstance(v, tuple) else v for k, v in kept.items()}
    return Produced(
        {"suites.resolved_tasks": pd.DataFrame([kept])},
        {"type": row["task_type"], "main_metric": row["main_metric"], "source": row["source"]},
    )
