"""Every task of the hub stand-in, uncapped: its pool scores what mteb.evaluate scores.

One cheap static model sees all tasks with all their subsets; a transformer sees the tasks of few
texts, whose vectors have no ties for a last digit to break. `--junitxml` keeps the differences.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.hub_tasks import TASKS

from mteblite.pools.pool import Pool
from mteblite.pools.restriction import restrict
from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.suite_model import SuiteModel
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.scoring import score_pool

WHOLE = PoolSettings(max_items=None, bm25_top=None, max_relevant=None, random_documents=None)
STATIC, TRANSFORMER = "package:wordllama-256", "package:minilm-l6"
CASES = [
    *((task, STATIC) for task in TASKS),
    ("BIOSSES", TRANSFORMER),
    ("STS17", TRANSFORMER),
    ("Tatoeba", TRANSFORMER),
    # of these models many summaries tie all but for the last digit of mteb's products
    ("SummEvalSummarization.v2", "package:wordllama-64"),
    ("SummEvalSummarization.v2", "package:glove-50d"),
]


class Parity:
    """Scores of ours and of mteb, on the same vectors."""

    def __init__(self, home: Path) -> None:
        from mteblite_resources.home import Home
        from mteblite_resources.workbench import Workbench

        self._ports = Workbench(Home(home).prepare()).ports

    def open(self, task: str, model: str) -> tuple[Any, Any]:
        """Return what the task is, and the model."""
        asked = dict(TASKS[task])
        splits = [asked.pop("split")] if "split" in asked else None
        registered = SuiteModel(name=model, family="any")
        encoder = self._ports.models.encoder(registered, None, lambda _: None)
        return self._ports.tasks.source.describe(task, splits, **asked), encoder

    def pool(self, about: Any) -> Pool:
        """Return the whole task."""
        return draw_pool(self._ports.tasks.source.load(about), WHOLE)

    def ours(self, pool: Pool, about: Any, encoder: Any) -> float:
        """Return our score of a pool."""
        vectors = self._ports.models.embed(pool, encoder, about)
        return score_pool(pool, vectors, similarity=encoder.similarity_name).pool_score

    def official(self, about: Any, encoder: Any) -> Any:
        """Return mteb's result of the task."""
        import mteb

        task = self._ports.tasks.source.task(about)
        quiet = {"cache": None, "co2_tracker": False, "show_progress_bar": False}
        return mteb.evaluate(encoder, task, **quiet).task_results[0]


@pytest.fixture(scope="module")
def parity(hub: Any, tmp_path_factory: pytest.TempPathFactory) -> Parity:
    """One home for all tasks: a text that two of them share is encoded once."""
    return Parity(tmp_path_factory.mktemp("parity"))


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("task", "model"), CASES, ids=lambda value: value.rpartition(":")[2])
def test_the_whole_task_scores_what_mteb_scores(
    parity: Parity, task: str, model: str, record_property: Callable[[str, object], None]
) -> None:
    about, encoder = parity.open(task, model)
    pool, official = parity.pool(about), parity.official(about, encoder)
    difference = parity.ours(pool, about, encoder) - official.get_score()
    record_property("difference", f"{difference:.2e}")
    assert abs(difference) <= 1e-6
    cells = {
        (split, cell["hf_subset"]): cell["main_score"]
        for split, scores in official.scores.items()
        for cell in scores
    }
    items = pool.items.groupby(["split", "hf_subset"])["item_id"].agg(list)
    assert set(items.index) == set(cells), "mteb scored other splits or subsets"
    assert {subset for _, subset in cells} == set(TASKS[task].get("hf_subsets", ["default"]))
    if len(cells) == 1 or pool.task_type == "Clustering":  # bootstraps depend on the cells before
        return
    for cell, main_score in cells.items():
        alone = parity.ours(restrict(pool, items[cell]), about, encoder)
        assert abs(alone - main_score) <= 1e-6, cell
