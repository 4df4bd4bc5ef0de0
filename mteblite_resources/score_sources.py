"""The sources of full scores of one home."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from mteblite.suites.suite_model import checkpoint_name
from mteblite.suites.task_description import TaskDescription
from mteblite_resources.home import Home
from mteblite_resources.mteb_registry import registry_facts
from mteblite_resources.official_results import OfficialResults
from mteblite_resources.result_folder import results_root
from mteblite_resources.results_source import ResultsSource, official_lookup, result_path


@dataclass(frozen=True)
class ScoreSources:
    """Own runs, own result files and the official results of a home.

    Attributes:
        home: holds own runs and own result files.
        location: folder or Parquet table of the official results; None = none is set.
    """

    home: Home
    location: Path | None

    @cached_property
    def official(self) -> OfficialResults:
        """The files of the official results."""
        return OfficialResults(self.location, self.home.cache)

    @cached_property
    def _local_root(self) -> Path:
        """The folder of own result files; read once, because a plan asks for every model."""
        return results_root(self.home.local_results)

    def usable(self, order: Sequence[str], *, of_mteb: bool = True) -> list[str]:
        """Return the configured sources of an order.

        Args:
            order: sources of the suite file.
            of_mteb: whether the task is one of mteb's. Own tasks and sample tasks have no
                published scores, so `run` is added as the last source.

        Raises:
            ValueError: no source is configured.
        """
        asked = order if of_mteb or "run" in order else [*order, "run"]
        names = [o for o in asked if o != "official" or self.location is not None]
        if not names:
            raise ValueError(
                "reference_scores: [official] needs official scores: let MTEBLITE_OFFICIAL_SCORES "
                "name a Parquet table or a folder of mteb results, or add `local` or `run`"
            )
        return names

    def chain(
        self,
        names: Sequence[str],
        description: TaskDescription,
        public: pd.DataFrame,
        variant: str = "",
    ) -> ResultsSource:
        """Return the source of full scores of a task.

        Args:
            names: usable sources by precedence.
            description: the task.
            public: official scores of public models on the task, one row per model.
            variant: variant of the model (`+norm`, `@dim=...`, a prompt strategy), "" for the
                checkpoint itself. Variants have no official scores.
        """
        lookup = None
        if "official" in names:
            rows = public[:0] if variant else public.assign(task=description.task)
            lookup = official_lookup(rows, self.official.facts.model_name)
        return ResultsSource(
            names, run=self.home.results, local=self.home.local_results, official=lookup,
            facts=lambda: registry_facts(self.home.cache),
        )  # fmt: skip

    def evidence(self, model: str, task: str, order: Sequence[str]) -> list[str]:
        """Return revisions and times of own result files, which change with a new file.

        Official results are a separate input (`public_scores`).
        """
        if "local" not in order:
            return []
        folder = result_path(self._local_root, model, "x", "x").parent.parent
        return [
            f"{path.parent.name} {path.stat().st_mtime_ns}"
            for path in sorted(folder.glob(f"*/{task}.json"))
        ]

    def public_name(self, model: str) -> str:
        """Return the present name of a checkpoint in the official results."""
        return self.official.facts.model_name(checkpoint_name(model))
