"""The home of one command: catalog, definitions, Dagster instance."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mteblite.suites.catalog import Catalog, Suite
from mteblite_assets.graph.keys import Scope
from mteblite_resources.home import Home

if TYPE_CHECKING:
    import dagster as dg

    from mteblite_assets.graph.plan import Ledger
    from mteblite_resources.workbench import Workbench

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""The terminal shows progress lines, not Dagster's log; the UI shows both."""
PLATFORM = ("dagster", "duckdb", "dagster_dbt", "dbt", "dagster_webserver")
"""Packages of the extra `platform`, which a home needs and a release does not."""
NEEDS_PLATFORM = (
    "this command works on a home, which needs the platform: pip install 'mteblite[platform]'"
)
NO_LITE_SUITE = (
    "suite {suite!r} has no lite selection yet{reason}: run `mteblite materialize --suite {suite}`"
)


class UsageError(ValueError):
    """Bad usage or bad input: exit code 2, one paragraph, no traceback."""


class Session:
    """A home and its objects, which are made on first use."""

    def __init__(self) -> None:
        if any(find_spec(name) is None for name in PLATFORM):
            raise UsageError(NEEDS_PLATFORM)
        self.home = Home.from_environment().prepare()
        # Child processes (dbt, runs of the daemon) must find the same home.
        os.environ["MTEBLITE_HOME"] = str(self.home.root)
        os.environ["DAGSTER_HOME"] = str(self.home.dagster)

    @cached_property
    def bench(self) -> Workbench:
        """The workbench, with the resources of the definitions."""
        from mteblite_resources.resources import default_workbench

        return default_workbench()

    @property
    def catalog(self) -> Catalog:
        """The present suites and models."""
        return self.bench.catalog()

    def suite(self, name: str) -> Suite:
        """Return a suite."""
        return self.catalog.suite(name)

    @cached_property
    def instance(self) -> dg.DagsterInstance:
        """The home's Dagster instance."""
        import dagster

        return dagster.DagsterInstance.get()

    @cached_property
    def definitions(self) -> dg.Definitions:
        """The definitions of the UI; made after the suites are resolved."""
        from mteblite_assets.definitions import build_definitions

        return build_definitions()

    def ledger(self) -> Ledger:
        """Read the ledger from the writer's file."""
        return self.bench.warehouse.ledger()

    def check_scope(self, scope: Scope) -> None:
        """Check the names of a scope.

        Raises:
            UsageError: a task, model or stage does not exist.
        """
        from mteblite_assets.graph.stages import STAGE_NAMES

        suite = self.suite(scope.suite)
        for task in scope.tasks:
            suite.task(task)
        for model in scope.models:
            suite.model(model)
        for stage in scope.stages:
            if stage not in STAGE_NAMES:
                raise UsageError(f"no stage {stage!r}; the stages are {', '.join(STAGE_NAMES)}")

    def resolve(self, name: str) -> Suite:
        """Resolve the tasks of a suite that are not frozen."""
        return self.bench.ports.tasks.resolve(self.suite(name))

    def refresh(self, name: str, say: Callable[[str], None]) -> Suite:
        """Resolve and freeze all tasks of a suite again; report the differences."""
        from mteblite.suites.resolution import differences
        from mteblite_resources.frozen_tasks import recall_resolution

        suite = self.suite(name)
        before = recall_resolution(self.home, suite.file)
        refreshed = self.bench.ports.tasks.resolve(suite, refresh=True)
        found = differences(before, recall_resolution(self.home, refreshed.file))
        for d in found:
            say(f"{d.task}: {d.what} was {d.frozen!r}, is {d.found!r}")
        say(f"{len(found)} differences from the frozen tasks; the new ones are frozen")
        return refreshed

    def register_partitions(self) -> None:
        """Add the dynamic partitions of all registered models, and delete the others."""
        from mteblite_assets.graph.upkeep import register_partitions

        register_partitions(self.instance, self.catalog, self.bench)

    def fail_dead_runs(self) -> None:
        """Mark runs of killed commands as failed; the UI would show them as running."""
        from mteblite_assets.graph.runs import fail_dead_runs

        fail_dead_runs(self.instance)

    def execute_job(self, config: dict[str, Any], tags: dict[str, str]) -> Any:
        """Run the `materialize` job in this process, as a run that the UI shows."""
        from mteblite_assets.graph.runs import JOB, PROCESS

        job = self.definitions.resolve_job_def(JOB)
        return job.execute_in_process(
            run_config={**config, **QUIET},
            instance=self.instance,
            tags={PROCESS: str(os.getpid()), **{f"mteblite/{k}": v for k, v in tags.items()}},
            raise_on_error=False,
        )

    def execute_partition(self, asset: str, key: str, *, force: bool = False) -> Any:
        """Run one partition of one asset; with `force` also one that is fresh."""
        import dagster

        return self.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            run_config={**QUIET, "ops": {asset: {"config": {"force": force}}}},
            instance=self.instance,
            asset_selection=[dagster.AssetKey(asset)],
            partition_key=key,
            raise_on_error=False,
        )
