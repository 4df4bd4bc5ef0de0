"""Make a release from the stored tables and pools of a home."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.files import DamagedFileError
from mteblite.releases.release_files import write_release
from mteblite.releases.released_task import ReleasedTask, release_task
from mteblite.releases.selection_document import SelectionFacts, selection_document
from mteblite.releases.suite_release import SuiteRelease
from mteblite.suites.task_description import TaskDescription
from mteblite.suites.task_types import task_types
from mteblite.validation.bootstrap import bootstrap_intervals
from mteblite_resources.artifacts import Artifacts

if TYPE_CHECKING:
    from mteblite.suites.catalog import Suite

RELEASE_COLUMNS = [
    "version", "number", "content_hash", "created_from", "variant", "mteb_version",
    "mteblite_version", "n_tasks", "n_items",
]  # fmt: skip
"""Columns of `lite_scores.releases` beside the suite."""


@dataclass(frozen=True)
class Releases:
    """Releases of one home: made from the rows of its tables, stored as folders.

    Attributes:
        exports: folder of all releases, one per suite and version.
    """

    exports: Path
    _artifacts: Artifacts

    def make(
        self, suite: Suite, created_from: str, tables: Mapping[str, pd.DataFrame]
    ) -> SuiteRelease:
        """Return the release of a suite from the present rows of its tables.

        Args:
            suite: the suite.
            created_from: data version of the lite suite.
            tables: rows of the suite by table name: the tables of the deps of `releases`.

        Raises:
            ValueError: the item ids of a task are texts, which a release may not hold.
        """
        lite = tables["lite_scores.lite_suites"].sort_values("task")
        tasks = tuple(_task(self._artifacts, row, tables) for row in lite.to_dict("records"))
        intervals = tables["lite_scores.lite_suite_intervals"].drop(
            columns="suite", errors="ignore"
        )
        variant, versions, joint = str(lite["variant"].iloc[0]), _versions(tables), _joint(tables)
        return SuiteRelease(
            suite=suite.name,
            variant=variant,
            max_tokens=suite.file.max_tokens,
            created_from=created_from,
            versions=versions,
            tasks=tasks,
            intervals=intervals,
            joint=joint,
            document=selection_document(
                _facts(suite, variant, created_from, versions, tasks, intervals, tables)
            ),
            headline=suite.file.headline,
            parts={e.task: e.part_of for e in suite.tasks if e.part_of},
        )

    def folder(self, suite: str, version: str) -> Path:
        """Return the folder of a release."""
        return self.exports / suite / version

    def keep(self, release: SuiteRelease, earlier: pd.DataFrame) -> pd.DataFrame:
        """Write a release into the exports; return all releases of the suite, oldest first.

        An existing folder of the same version is not changed.

        Args:
            release: the release.
            earlier: recorded releases of the suite (RELEASE_COLUMNS), in any order.
        """
        write_release(release, self.folder(release.suite, release.version))
        earlier = earlier[RELEASE_COLUMNS].sort_values("number", ignore_index=True)
        if release.version in set(earlier["version"]):
            return earlier
        new = pd.DataFrame([_record(release, len(earlier) + 1)], columns=RELEASE_COLUMNS)
        return new if earlier.empty else pd.concat([earlier, new], ignore_index=True)


def _record(release: SuiteRelease, number: int) -> dict[str, Any]:
    return {
        "version": release.version,
        "number": number,
        "content_hash": release.content_hash,
        "created_from": release.created_from,
        "variant": release.variant,
        "mteb_version": release.versions["mteb"],
        "mteblite_version": release.versions["mteblite"],
        "n_tasks": len(release.tasks),
        "n_items": release.n_items,
    }


def _task(artifacts: Artifacts, row: Mapping[Any, Any], tables: Mapping[str, Any]) -> ReleasedTask:
    resolved = tables["suites.resolved_tasks"].set_index("pool_task").loc[row["pool_task"]]
    try:
        pool = artifacts.pool(pd.DataFrame([row]), str(row["pool_task"]))
    except DamagedFileError as error:
        raise ValueError(
            f"{error}: run `mteblite materialize --stage pools --force` for its suite"
        ) from error
    description = TaskDescription(
        task=str(row["task"]),
        task_type=str(row["task_type"]),
        main_metric=str(resolved["main_metric"]),
        splits=tuple(map(str, resolved["splits"])),
        hf_subsets=tuple(map(str, resolved["hf_subsets"])),
        dataset_revision=str(resolved["dataset_revision"] or ""),
        source=str(resolved["source"]),
        metrics=tuple(pool.meta.get("metrics", [])),
    )
    fitted = FittedTask.from_json(str(row["fitted"]))
    return release_task(description, fitted, pool, str(row["pool_hash"]))


def _facts(
    suite: Suite,
    variant: str,
    created_from: str,
    versions: dict[str, str],
    tasks: tuple[ReleasedTask, ...],
    intervals: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
) -> SelectionFacts:
    types = task_types(tables["suites.suite_tasks"])
    pools = tables["suites.suite_tasks"][["task", "pool_task"]]
    stats = tables["pools.shared_pool_stats"].drop(columns="task").merge(pools, on="pool_task")
    return SelectionFacts(
        suite=suite.name,
        description=suite.file.description,
        variant=variant,
        max_tokens=suite.file.max_tokens,
        caps=suite.file.pool.model_dump(),
        sources=list(suite.file.reference_scores),
        created_from=created_from,
        versions=versions,
        tasks=tasks,
        suite_tasks=tables["suites.suite_tasks"],
        pool_stats=stats,
        kept_models=tables["reference_scores.kept_models"],
        metrics=tables["validation.validation_metrics"],
        bootstrap=_bootstrap(variant, types, tables),
        intervals=intervals,
    )


def _bootstrap(
    variant: str, types: Mapping[str, str], tables: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Return stored intervals of the metrics, else those of the variants in the document."""
    metrics = tables["validation.validation_metrics"]
    if {"lower", "upper"} <= set(metrics.columns):
        return metrics
    predictions = tables["validation.lomo_predictions"]
    shown = predictions["variant"].isin([variant, "pool/mean"]) & predictions["task"].isin(types)
    return bootstrap_intervals(predictions[shown], types)


def _joint(tables: Mapping[str, pd.DataFrame]) -> str | None:
    joint = tables.get("lite_scores.lite_suite_joint")
    return None if joint is None or joint.empty else str(joint["joint"].iloc[0])


def _versions(tables: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Return the version of mteb that the tasks are frozen with, and the installed mteblite."""
    try:
        installed = version("mteblite")
    except PackageNotFoundError:  # run from a checkout
        installed = "unknown"
    frozen = sorted(set(tables["suites.suite_tasks"]["mteb_version"].astype(str)))
    return {"mteb": frozen[0] if frozen else "unknown", "mteblite": installed}
