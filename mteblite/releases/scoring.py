"""Scoring a model on a release: rebuild the selected items, encode their texts, observe.

Needs the release's folder and the tasks' data; no warehouse, no pool, no reference model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mteblite.lite_scores.observing import observe_selection
from mteblite.models.encoders import EncodingSettings
from mteblite.releases.released_task import ReleasedTask, rebuild_pool
from mteblite.releases.suite_release import SuiteRelease
from mteblite.suites.suite_file import SuiteModel
from mteblite.tasks.pinned_tasks import PinnedTasks, check_data_names, located
from mteblite_resources.home import Home
from mteblite_resources.workbench import Workbench


@dataclass(frozen=True)
class Observed:
    """What a model did on the selections of a release.

    Attributes:
        results: per task what `score_selections` takes.
        n_texts: texts that the selections need.
        n_encoded: those that were not in the store.
    """

    results: dict[str, np.ndarray]
    n_texts: int
    n_encoded: int


def observe_release(
    release: SuiteRelease,
    model: SuiteModel,
    home: Path,
    *,
    data: Mapping[str, Path] | None = None,
    settings: EncodingSettings | None = None,
    tasks: PinnedTasks | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Observed:
    """Run a model on the selected items of a release.

    Args:
        release: the release.
        model: the model.
        home: where vectors and caches are kept; needs to hold nothing.
        data: folders of the user's own data, by task.
        settings: batch size, device, precision.
        tasks: how tasks are loaded.
        progress: called with a short text per task.

    Raises:
        ValueError: data that changed since the release was made, own data without a folder, a
            model that cannot be read; says which.
        TaskDownloadError: a task's data could not be had.
    """
    bench = Workbench(Home(home), tasks or PinnedTasks(), settings)
    folders = dict(data or {})
    check_data_names([t.description for t in release.tasks], folders)
    bench.identify(model)  # a typo must not cost the first task's download
    results, n_texts, n_encoded = {}, 0, 0
    for task in release.tasks:
        progress(f"scoring {task.task} on {len(task.fitted.selection)} items")
        found, texts, encoded = _observe(bench, release, task, model, folders, progress)
        results[task.task] = found
        n_texts, n_encoded = n_texts + texts, n_encoded + encoded
    return Observed(results, n_texts, n_encoded)


def _observe(
    bench: Workbench,
    release: SuiteRelease,
    task: ReleasedTask,
    model: SuiteModel,
    folders: Mapping[str, Path],
    progress: Callable[[str], None],
) -> tuple[np.ndarray, int, int]:
    """Results on one task, and how many texts it took and were encoded."""
    description = located(task.description, folders)
    pool = rebuild_pool(task, bench.tasks.load(description))
    encoder = bench.encoder(model, release.max_tokens, progress)
    before = encoder.counts.encoded
    vectors = bench.embed(pool, encoder, description)
    found = observe_selection(
        task.fitted.kind, pool, vectors, task.fitted.selection, similarity=encoder.similarity_name
    )
    return found, len(vectors), encoder.counts.encoded - before
