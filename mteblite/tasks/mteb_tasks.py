"""One interface to mteb's tasks, the sample tasks and a user's own data.

A task is described (cheap, no download), made (an mteb task object restricted to its splits and
subsets, for mteb's full runs) or loaded (plain frames, for pools). All three use the same mteb task
object, so that a pool and mteb's evaluation have the same data.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mteblite.pools.task_data import TaskData
from mteblite.suites.resolution import FrozenTask, LeftOut, Resolution
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.registry import find_type, type_names

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask


@dataclass(frozen=True)
class MtebTasks:
    """Describes, makes and loads tasks.

    Attributes:
        attempts: most attempts at a download; a lost connection counts twice.
        wait_seconds: pause before the second attempt; doubles from attempt to attempt.
            huggingface_hub's own retries add about 25 s per attempt while the hub is down.
    """

    attempts: int = 6
    wait_seconds: float = 0.5

    def describe(
        self,
        task: str,
        splits: Sequence[str] | None = None,
        hf_subsets: Sequence[str] | None = None,
        *,
        path: Path | None = None,
        task_type: str | None = None,
        metrics: Sequence[str] = (),
    ) -> TaskDescription:
        """Return a task's description, without a download.

        Splits and subsets are in mteb's order, because mteb's clustering depends on it. A type that
        mteblite does not support is described too.

        Args:
            task: mteb's task name, a sample task's, or the user's own.
            splits: evaluation splits; None = those of mteb's metadata.
            hf_subsets: subsets; None = those of mteb's metadata.
            path: folder of the user's own data; see `own_tasks` for its files.
            task_type: type of the user's own data; required with `path`.
            metrics: extra metrics.

        Raises:
            ValueError: no such task, split or subset; the message lists the known ones.
        """
        from mteblite.tasks import own_tasks, task_lookup

        if path is not None:
            task_lookup.require_free_name(task)
            return own_tasks.describe_own(task, task_type, Path(path), splits, hf_subsets, metrics)
        found = task_lookup.fresh_task(task)
        described = task_lookup.description_of(found, source=task_lookup.source_of(task))
        if metrics and described.task_type in type_names():
            find_type(described.task_type).check_metrics(task, metrics)
        known, choose = found.metadata, task_lookup.choose
        return replace(
            described,
            splits=choose(task, "split", splits, known.eval_splits, described.splits),
            hf_subsets=choose(task, "subset", hf_subsets, known.hf_subsets, described.hf_subsets),
            metrics=tuple(metrics),
        )

    def benchmark(self, name: str) -> Resolution:
        """Return a benchmark's tasks that can be reduced, and the others with the reason.

        A task that occurs twice, with different splits or subsets, is one task with the union.

        Raises:
            ValueError: no such benchmark; the message names close matches.
        """
        from mteblite.tasks import task_lookup

        members = task_lookup.benchmark_members(name)
        parts, version = task_lookup.benchmark_parts(name), self.mteb_version()
        tasks, left_out = {}, []
        for task in members:
            described = task_lookup.description_of(task, source="mteb")
            if reason := task_lookup.why_left_out(task):
                left_out.append(LeftOut(described.task, described.task_type, reason))
            else:
                part_of = parts.get(described.task, "")
                tasks[described.task] = FrozenTask(described, "", version, part_of)
        return Resolution(tasks=tasks, benchmark=name, left_out=tuple(left_out))

    def task(self, description: TaskDescription) -> AbsTask:
        """Return a fresh mteb task object with the description's splits and subsets, not loaded.

        Raises:
            ValueError: the task's data revision differs from the description's.
        """
        from mteblite.tasks import own_tasks, task_lookup

        if description.source == "path":
            made = own_tasks.own_task(description)
        else:
            made = task_lookup.fresh_task(description.task)
        revision = task_lookup.revision_of(made)
        if description.dataset_revision not in ("", revision):
            raise ValueError(
                f"{description.task}: described with data revision "
                f"{description.dataset_revision!r}, but the data are now at {revision!r}; scores "
                "of two revisions do not compare: run again; if the error stays, accept the new "
                "revision with `mteblite tasks --suite NAME --refresh`"
            )
        return task_lookup.restricted(made, description.splits, description.hf_subsets)

    def load(self, description: TaskDescription) -> TaskData:
        """Load a task by mteb's `load_data()` and return it as plain frames.

        Raises:
            ValueError: type, modality or protocol of the task is not supported, or its data are
                malformed; names the task.
            TaskDownloadError: the data could not be downloaded (a ConnectionError); names task,
                data set and the last error.
        """
        from mteblite.tasks.task_cells import task_data

        return task_data(self.loaded_task(description), description)

    def loaded_task(self, description: TaskDescription) -> AbsTask:
        """Return a fresh mteb task object with its data loaded; failed downloads are tried again.

        Raises:
            ValueError: type or modality of the task is not supported.
            TaskDownloadError: the data could not be downloaded.
        """
        from mteblite.tasks.task_downloads import load_with_retries

        if description.task_type not in type_names():
            raise ValueError(
                f"{description.task}: task type {description.task_type!r} is not supported; "
                f"supported types: {', '.join(type_names())}. Leave the task out of the suite"
            )
        modalities = list(self.task(description).metadata.modalities)
        if modalities != ["text"]:
            raise ValueError(
                f"{description.task} ({description.task_type}): has modalities {modalities}; only "
                "text tasks are supported. Leave the task out of the suite"
            )
        if description.source != "mteb":  # local files need no second attempt
            local = self.task(description)
            local.load_data()
            return local
        return load_with_retries(
            lambda: self.task(description), attempts=self.attempts, wait_seconds=self.wait_seconds
        )

    def mteb_version(self) -> str:
        """Return the version of the installed mteb, without an import."""
        return importlib.metadata.version("mteb")
