"""The runs of one home: which are in progress, what they are about, and which are dead."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from mteblite_assets.graph.keys import Scope

JOB = "materialize"
OP = "upkeep"
LIGHT = ("registered_models", "dbt_reports")
"""Assets that follow a new checkpoint, too; they take seconds."""
SCORES = ("lite_scores", *LIGHT)
"""Assets of a run that scores new checkpoints and brings the reports up to date."""
PROCESS = "mteblite/process"
"""Tag of a run: the process that executes it. A run whose process is gone is dead."""
HOST = "mteblite/host"
"""Tag of a run: the machine of its process."""
KIND = "mteblite/kind"
"""Tag of runs that the daemon starts: `scores` of new checkpoints, or `upkeep` of a suite."""
PLAN = "mteblite/plan"
"""Tag of runs that the daemon starts: digest of the partitions that were stale."""
IN_PROGRESS = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def scope_config(scope: Scope, *, force: bool = False, retry: bool = True) -> dict[str, Any]:
    """Return the run configuration of the `materialize` job for a scope."""
    config = {
        "suite": scope.suite,
        "tasks": list(scope.tasks),
        "models": list(scope.models),
        "stages": list(scope.stages),
        "assets": list(scope.assets),
        "force": force,
        "retry": retry,
    }
    return {"ops": {OP: {"config": config}}}


def scope_of(config: Mapping[str, Any]) -> Scope:
    """Return the scope of the configuration of the job's op."""
    parts = (tuple(config.get(name) or ()) for name in ("tasks", "models", "stages", "assets"))
    return Scope(config["suite"], *parts)


def process_tags() -> dict[str, str]:
    """Return the tags that name this process."""
    return {PROCESS: f"{os.getpid()} {_started(os.getpid())}", HOST: socket.gethostname()}


def runs_in_progress(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Return queued and running runs, without those whose process was killed."""
    return [
        run
        for run in instance.get_runs(dg.RunsFilter(statuses=IN_PROGRESS))
        if not _was_killed(run)
    ]


def models_being_scored(instance: dg.DagsterInstance, suite: str, but: str = "") -> set[str]:
    """Return the models of a suite that runs for new checkpoints score now.

    Args:
        instance: knows the runs.
        suite: its name.
        but: a run that does not count.
    """
    scopes = (
        scope_of(config)
        for run in runs_in_progress(instance)
        if run.tags.get(KIND) == "scores" and run.run_id != but
        for config in _configs(run)
    )
    return {model for scope in scopes if scope.suite == suite for model in scope.models}


def fail_dead_runs(instance: dg.DagsterInstance, *, of_daemon: bool = False) -> None:
    """Mark the runs of killed processes as failed; they would count as in progress for ever.

    Args:
        instance: knows the runs.
        of_daemon: no daemon runs on this home, so runs that have not named a process are dead.
    """
    started = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]
    for run in instance.get_runs(dg.RunsFilter(statuses=started)):
        if _was_killed(run) or (of_daemon and PROCESS not in run.tags):
            instance.report_run_failed(run, "the process that ran it was killed")


def _configs(run: dg.DagsterRun) -> Iterator[Mapping[str, Any]]:
    ops: Any = run.run_config.get("ops", {})
    config = ops.get(OP, {}).get("config", {})
    if config.get("suite"):
        yield config


def _was_killed(run: dg.DagsterRun) -> bool:
    process, _, started = run.tags.get(PROCESS, "").partition(" ")
    here = socket.gethostname()
    if not process.isdigit() or run.tags.get(HOST, here) != here:
        return False
    # After a restart of the machine the number can belong to another process.
    return not _is_alive(int(process)) or started not in ("", _started(int(process)))


def _started(process: int) -> str:
    """Return when a process started, in the kernel's units; "" where the system does not say."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True
