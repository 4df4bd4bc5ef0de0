"""The full score of a model on a task: from a source, else from a run of mteb."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd

from mteblite.suites.catalog import TaskEntry
from mteblite.suites.suite_model import SuiteModel
from mteblite_resources.home import Home
from mteblite_resources.models import Models
from mteblite_resources.results_source import FullScore, QuarantinedScore
from mteblite_resources.score_sources import ScoreSources
from mteblite_resources.suite_tasks import SuiteTasks


@dataclass(frozen=True)
class FullScores:
    """Full scores of one home's models.

    Attributes:
        sources: own runs, own result files, official results.
    """

    sources: ScoreSources
    _home: Home
    _tasks: SuiteTasks
    _models: Models

    def full_score(
        self,
        entry: TaskEntry,
        model: SuiteModel,
        max_tokens: int | None,
        order: Sequence[str],
        public: pd.DataFrame,
        progress: Callable[[str], None],
    ) -> FullScore | None:
        """Return the full score of the first source that has one; None where no source has one.

        The source `run` runs mteb where its result does not exist yet.

        Args:
            entry: the task.
            model: the model.
            max_tokens: token cap of runs of mteb.
            order: sources by precedence.
            public: official scores of public models on the task, one row per model.
            progress: receives a line before a run of mteb.

        Raises:
            QuarantinedScore: the official score is the only one, and it is in quarantine.
            RefusedScore: only unusable scores exist; the message has the reason.
            ValueError: the only source is not configured.
        """
        description = self._tasks.describe(entry)
        order = self.sources.usable(order, of_mteb=description.source == "mteb")
        deviation = self._models.with_weights(model).deviation
        chain = self.sources.chain(order, description, public, deviation)
        encoder = self._models.encoder(model, max_tokens, progress)
        revision = encoder.result_revision
        try:
            score = chain.full_score(model.name, revision, description)
        except QuarantinedScore:
            if "run" not in order:
                raise
            score = None
        if score is not None or "run" not in order:
            return score
        from mteblite_resources.full_runs import run_full

        progress("running mteb on the full task")
        run_full(self._tasks.loaded_task(description), encoder, self._home.results)
        return chain.full_score(model.name, revision, description)
