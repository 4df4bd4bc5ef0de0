"""The pure mteb path: a release's tasks score what mteblite observes on the same items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.in_memory_tasks import TASKS, encoder, vector

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.lite_scores.observing import observe_selection
from mteblite.pools.pool import Pool
from mteblite.releases.released_task import (
    ReleasedTask,
    rebuild_pool,
    release_task,
)
from mteblite.releases.released_tasks import restricted_task
from mteblite.seeds import generator
from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.registry import task_kind
from mteblite.task_types.scoring import score_pool, set_statistic
from mteblite.tasks.pinned_tasks import PinnedTasks

WHOLE = PoolSettings(max_items=None, bm25_top=None, max_relevant=None, random_documents=None)
CAPPED = PoolSettings(max_items=30, bm25_top=8, max_relevant=2, random_documents=12)
K = 11


class InMemory(PinnedTasks):
    """Makes the tasks of tests/support/in_memory_tasks.py."""

    def __init__(self, name: str) -> None:
        super().__init__()
        object.__setattr__(self, "name", name)

    def task(self, description: TaskDescription) -> Any:
        made = TASKS[self.name]()
        made.dataset, made.data_loaded = None, False
        return made


def released(name: str, settings: PoolSettings) -> ReleasedTask:
    """A release of K random items of an in-memory task."""
    from mteblite.tasks.task_lookup import description_of

    description = description_of(TASKS[name](), source="mteb")
    pool = draw_pool(InMemory(name).load(description), settings)
    return release_task(description, fitted(pool), pool, pool.pool_hash())


def fitted(pool: Pool, subset: str | None = None) -> FittedTask:
    ids = pool.items["item_id"]
    if subset is not None:
        ids = ids[pool.items["hf_subset"] == subset]
    chosen = generator("tests", pool.meta["task"]).choice(ids.to_numpy(), K, replace=False)
    selection = pd.DataFrame(
        {"item_id": chosen, "method": "random", "rank": range(K), "weight": 1 / K}
    )
    parameters = pd.DataFrame({
        "item_id": pool.items["item_id"], "response_model": "linear_gaussian",
        "slope": 0.1, "intercept": 0.5, "residual_sd": 0.1, "n_models": 3,
    })  # fmt: skip
    numbers = ("intercept", "residual_sd", "theta_mean", "reference_low")
    calibration = {
        "method": "linear", "estimator": "mean", "slope": 1.0, "theta_sd": 1.0, "n_models": 3,
        "reference_high": 1.0, **dict.fromkeys(numbers, 0.0),
    }  # fmt: skip
    return FittedTask.from_tables(
        task=pool.meta["task"], task_type=pool.task_type, kind=task_kind(pool.task_type),
        items=pool.items, selection=selection, item_parameters=parameters,
        calibration=calibration,
    )  # fmt: skip


def vectors_of(pool: Pool) -> np.ndarray:
    return np.stack([vector(text) for text in pool.texts["text"]])


def raw_statistic(task: ReleasedTask, pool: Pool) -> float:
    """The uncalibrated score of the encoder of the tests, every item counting the same."""
    selection = task.fitted.selection
    found = observe_selection(task.fitted.kind, pool, vectors_of(pool), selection)
    rows = task.fitted.selected_rows
    if task.fitted.kind == "set_metric":
        return set_statistic(pool.task_type, found, rows, np.full(len(rows), 1 / len(rows)))
    cells = rows.assign(outcome=found).groupby(["split", "hf_subset"])["outcome"]
    return float(cells.mean().mean())


def evaluated(task: Any) -> Any:
    import mteb

    result = mteb.evaluate(encoder(), task, cache=None, show_progress_bar=False, co2_tracker=False)
    return result.task_results[0]


def mean_of(result: Any, metric: str) -> float:
    cells = [cell for split in result.scores.values() for cell in split]
    return float(np.mean([cell[metric] for cell in cells]))


OFFICIAL = [name for name in TASKS if not name.startswith(("clustering", "bitext"))]


@pytest.mark.parametrize("name", OFFICIAL)
@pytest.mark.parametrize("settings", [WHOLE, CAPPED], ids=["whole", "capped"])
def test_mteb_scores_the_raw_statistic(name: str, settings: PoolSettings) -> None:
    task, tasks = released(name, settings), InMemory(name)
    if name == "pairs" and settings is CAPPED:
        pytest.skip("a balanced pool is weighted back to the label prior, which mteb knows not of")
    pool = rebuild_pool(task, tasks.load(task.description))
    score = evaluated(restricted_task(task, tasks)).get_score()
    # mteb rounds what search scores to five decimals
    assert score == pytest.approx(raw_statistic(task, pool), abs=6e-6)


@pytest.mark.parametrize("name", [n for n in TASKS if n.startswith("clustering")])
def test_clustering_is_mtebs_own_score_of_the_selected_documents(name: str) -> None:
    task, tasks = released(name, WHOLE), InMemory(name)
    restricted = restricted_task(task, tasks)
    score = evaluated(restricted).get_score()
    # The same documents as a task of their own: mteb's bootstraps over them, by our own code.
    restricted.load_data()
    from mteblite.tasks.task_cells import task_data
    from mteblite.tasks.task_lookup import description_of

    pool = draw_pool(task_data(restricted, description_of(restricted, source="mteb")), WHOLE)
    assert set(pool.items["item_id"]) == set(task.fitted.selection["item_id"])
    assert score == pytest.approx(score_pool(pool, vectors_of(pool)).pool_score, abs=1e-6)


@pytest.mark.parametrize("settings", [WHOLE, CAPPED], ids=["whole", "capped"])
def test_bitext_is_searched_among_the_same_targets(settings: PoolSettings) -> None:
    task, tasks = released("bitext", settings), InMemory("bitext")
    pool = rebuild_pool(task, tasks.load(task.description))
    accuracy = mean_of(evaluated(restricted_task(task, tasks)), "accuracy")
    raw = raw_statistic(task, pool)
    if settings is WHOLE:
        assert accuracy == pytest.approx(raw, abs=1e-6)
    else:  # the targets of the other items are distractors to mteb, too
        assert accuracy <= raw + 1e-6


@pytest.mark.parametrize("name", ["sts", "clustering sampled", "retrieval", "bitext"])
def test_subsets_without_an_item_are_not_evaluated(name: str) -> None:
    from mteblite.tasks.task_lookup import description_of

    tasks = InMemory(name)
    description = description_of(TASKS[name](), source="mteb")
    pool = draw_pool(tasks.load(description), WHOLE)
    task = release_task(description, fitted(pool, "two"), pool, "0")
    result = evaluated(restricted_task(task, tasks))
    assert [cell["hf_subset"] for cell in result.scores["test"]] == ["two"]
    assert np.isfinite(result.get_score())


@pytest.mark.parametrize("name", TASKS)
def test_data_that_changed_is_refused_and_not_scored(name: str) -> None:
    task, tasks = released(name, WHOLE), InMemory(name)
    texts = task.pool.texts.assign(text_sha256="0" * 32)
    broken = restricted_task(replace(task, pool=replace(task.pool, texts=texts)), tasks)
    with pytest.raises(ValueError, match=r"InMemory\w+: the text of item '(one|two)/test/.* '1'"):
        broken.load_data()
    assert not broken.data_loaded


def test_the_task_keeps_its_name_and_loads_again() -> None:
    task, tasks = released("sts", WHOLE), InMemory("sts")
    restricted = restricted_task(task, tasks)
    first = evaluated(restricted).get_score()
    assert restricted.metadata.name == "InMemorySTS"
    assert not restricted.data_loaded  # mteb unloads what it has loaded
    assert evaluated(restricted).get_score() == first
