"""Where tasks come from: mteb's own classes, the sample tasks and a user's files, in one face.

A task is described (cheap, no download), made (an mteb task object restricted to its splits and
subsets, for mteb's own full run) or loaded (plain frames, for pools). Whatever the origin, the
same mteb object stands behind all three, so that a pool and mteb's own evaluation see one data.
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
        attempts: how often a download is tried before giving up; a lost connection counts twice.
        wait_seconds: pause before the second attempt; doubles from attempt to attempt.
            huggingface_hub's own retries come on top (some 25 s per attempt with the hub down).
    """

    attempts: int = 6
    wait_seconds: float = 0.5

    def describe(
        self,
        task: str,
        splits: Sequence[str] | None = None,
        hf_subsets: Sequence[str] | None = None,
        benchmark: str | None = None,
        *,
        path: Path | None = None,
        task_type: str | None = None,
        metrics: Sequence[str] = (),
    ) -> TaskDescription:
        """Return what a task is, without downloading anything.

        Splits and subsets that are not given are those of the benchmark's task instance where a
        benchmark is named, else those of mteb's metadata. Both come back in mteb's order, which
        mteb's clustering depends on. A type that mteblite does not support is described too.

        Args:
            task: mteb's task name, a sample task's, or the user's own.
            splits: evaluation splits.
            hf_subsets: subsets.
            benchmark: mteb benchmark that the task is taken from.
            path: folder of the user's own data; see `own_tasks` for its files.
            task_type: type of the user's own data; required with `path`.
            metrics: extra metrics asked for.

        Raises:
            ValueError: no such task, benchmark, split or subset; the message lists what there is.
        """
        from mteblite.tasks import own_tasks, task_lookup

        if path is not None:
            task_lookup.require_free_name(task)
            return own_tasks.describe_own(task, task_type, Path(path), splits, hf_subsets, metrics)
        found = task_lookup.find_task(task, benchmark)
        described = task_lookup.description_of(found, source=task_lookup.source_of(task))
        if metrics and described.task_type in type_names():
            find_type(described.task_type).check_metrics(task, metrics)
        return replace(
            described,
            splits=task_lookup.choose(
                task, "split", splits, found.metadata.eval_splits, described.splits
            ),
            hf_subsets=task_lookup.choose(
                task, "subset", hf_subsets, found.metadata.hf_subsets, described.hf_subsets
            ),
            metrics=tuple(metrics),
        )

    def benchmark(self, name: str) -> Resolution:
        """Return a benchmark's tasks that can be reduced, and the others with the reason.

        Raises:
            ValueError: no such benchmark; the message names close matches.
        """
        from mteblite.tasks import task_lookup

        members = task_lookup.benchmark_members(name)
        parts, version = task_lookup.benchmark_parts(name), self.mteb_version()
        tasks, left_out = {}, []
        for task in members:
            described, reason = (
                task_lookup.description_of(task, source="mteb"),
                task_lookup.why_left_out(task),
            )
            if reason:
                left_out.append(LeftOut(described.task, described.task_type, reason))
            else:
                part_of = parts.get(described.task, "")
                tasks[described.task] = FrozenTask(described, "", version, part_of)
        return Resolution(tasks=tasks, benchmark=name, left_out=tuple(left_out))

    def task(self, description: TaskDescription) -> AbsTask:
        """Return a fresh mteb task object with the description's splits and subsets, not loaded.

        Raises:
            ValueError: the task's data revision is no longer the one described.
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
                f"{description.dataset_revision!r}, but its data is now at {revision!r}; scores "
                "of the two do not compare: run again; if that does not help, accept the new "
                "revision with `mteblite tasks --suite NAME --refresh`"
            )
        return made.filter_eval_splits(list(description.splits)).filter_languages(
            None, hf_subsets=list(description.hf_subsets)
        )

    def load(self, description: TaskDescription) -> TaskData:
        """Load a task through mteb's own `load_data()` and return it as plain frames.

        Raises:
            ValueError: type, modality or protocol of the task is not supported, or its data are
                malformed; names the task.
            TaskDownloadError: the data could not be had (a ConnectionError); names task, data set
                and the last error.
        """
        loaded = self.loaded_task(description)
        from mteblite.tasks.task_cells import task_data

        return task_data(loaded, description)

    def loaded_task(self, description: TaskDescription) -> AbsTask:
        """Return a fresh mteb task object with its data loaded, downloads tried again on faults.

        Raises:
            ValueError: type or modality of the task is not supported.
            TaskDownloadError: the data could not be had.
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
        if description.source != "mteb":  # files of this machine: nothing to try again
            local = self.task(description)
            local.load_data()
            return local
        return load_with_retries(
            lambda: self.task(description), attempts=self.attempts, wait_seconds=self.wait_seconds
        )

    def mteb_version(self) -> str:
        """Return the installed mteb's version, without importing it."""
        return importlib.metadata.version("mteb")
