"""The home of one command: catalog, definitions, Dagster instance."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from mteblite.names import did_you_mean
from mteblite.own_errors import INTERRUPTED
from mteblite.suites.catalog import Catalog, Suite
from mteblite_assets.graph.keys import Scope
from mteblite_resources.home import Home, HomeError

if TYPE_CHECKING:
    import dagster as dg

    from mteblite_assets.graph.requirements import Ledger
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

    def __init__(self, *, reading: bool = False) -> None:
        """Prepare the home of the environment; with `reading`, one that cannot be written will do.

        Raises:
            UsageError: the platform is not installed.
            HomeError: the home cannot be used.
        """
        if any(find_spec(name) is None for name in PLATFORM):
            raise UsageError(NEEDS_PLATFORM)
        self._said: set[str] = set()
        self.home = Home.from_environment()
        self.writable = True
        try:
            self.home.prepare()
        except HomeError as error:
            if error.is_file or not reading:
                raise
            self.writable = False
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
        """Return a suite; say once where a file of the user has its name and is not read."""
        catalog = self.catalog
        found = catalog.suite(name)
        for file, problem in catalog.problems.items():
            same = file.rsplit(".", 1)[0] == name or f"the name {name!r} is taken" in problem
            if same and problem not in self._said:
                self._said.add(problem)
                click.echo(f"warning: {problem}; that file is not read", err=True)
        return found

    @cached_property
    def instance(self) -> dg.DagsterInstance:
        """The home's Dagster instance, which does not capture what this process prints.

        Dagster would start processes for that, and Ctrl-C, which reaches all processes of a
        terminal, makes them print tracebacks. Runs of the daemon are captured.
        """
        import dagster as dg
        from dagster._core.instance.ref import InstanceRef

        module = "dagster._core.storage.noop_compute_log_manager"
        overrides: Any = {"compute_logs": {"module": module, "class": "NoOpComputeLogManager"}}
        ref = InstanceRef.from_dir(str(self.home.dagster), overrides=overrides)
        return dg.DagsterInstance.from_ref(ref)

    @cached_property
    def definitions(self) -> dg.Definitions:
        """The definitions of the UI; made after the suites are resolved."""
        from mteblite_assets.definitions import build_definitions

        return build_definitions()

    def ledger(self) -> Ledger:
        """Read the ledger, rows counted; the published one where the home is not writable."""
        from mteblite_assets.graph.damage import counted_ledger

        warehouse = self.bench.warehouse
        if self.writable and warehouse.is_new():
            return {}
        try:
            with warehouse.session() if self.writable else warehouse.reading() as connection:
                return counted_ledger(connection)
        except FileNotFoundError:
            return {}

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
                near = did_you_mean(stage, STAGE_NAMES)
                raise UsageError(f"no stage {stage!r}; {near}there are {', '.join(STAGE_NAMES)}")

    def resolve(self, name: str) -> Suite:
        """Resolve the tasks of a suite that are not frozen.

        Raises:
            UsageError: some are not, and the home cannot be written.
        """
        suite = self.suite(name)
        try:
            return self.bench.ports.tasks.resolve(suite)
        except OSError as error:
            if self.writable:
                raise
            raise UsageError(
                f"the tasks of suite {name!r} are not frozen yet (or their data have changed), and "
                f"{self.home.root} cannot be written: run this with a home that can"
            ) from error

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
        """Run the `materialize` job in this process, as a run that the UI shows.

        Raises:
            KeyboardInterrupt: the run was stopped (Ctrl-C, SIGTERM).
        """
        from mteblite_assets.graph.runs import JOB, process_tags

        job = self.definitions.resolve_job_def(JOB)
        result = job.execute_in_process(
            run_config={**config, **QUIET},
            instance=self.instance,
            tags={**process_tags(), **{f"mteblite/{k}": v for k, v in tags.items()}},
            raise_on_error=False,
        )
        return _unless_stopped(result)

    def execute_partition(self, asset: str, key: str, *, force: bool = False) -> Any:
        """Run one partition of one asset; with `force` also one that is fresh.

        Raises:
            KeyboardInterrupt: the run was stopped (Ctrl-C, SIGTERM).
        """
        import dagster

        result = self.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
            run_config={**QUIET, "ops": {asset: {"config": {"force": force}}}},
            instance=self.instance,
            asset_selection=[dagster.AssetKey(asset)],
            partition_key=key,
            raise_on_error=False,
        )
        return _unless_stopped(result)


def errors_of(result: Any) -> list[Any]:
    """Return the errors of a run of Dagster's, each followed by what caused it."""
    errors = []
    for event in result.all_events:
        failed = event.is_step_failure or event.event_type_value == "PIPELINE_FAILURE"
        error = getattr(event.event_specific_data, "error", None) if failed else None
        while error is not None:
            errors.append(error)
            error = error.cause
    return errors


def _unless_stopped(result: Any) -> Any:
    """Return the result of a run; Dagster reports a stopped one as a failed step."""
    stops = ("DagsterExecutionInterruptedError", "KeyboardInterrupt")
    if any(e.cls_name in stops or INTERRUPTED in str(e.message) for e in errors_of(result)):
        raise KeyboardInterrupt
    return result
