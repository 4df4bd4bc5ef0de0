"""The contracts of the outcomes hold for every type, and break where a number is off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.pool_tasks import CAPS, MAKERS, summarization, task, vectors_of

from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.registry import type_facts
from mteblite.task_types.scoring import score_pool
from mteblite_assets.outcomes.checks import CHECKS
from mteblite_resources.warehouse import Warehouse, replace_partition

MEANS = {
    "Retrieval": ["ndcg_at_10", "map_at_100", "mrr_at_10", "accuracy"],
    "Reranking": ["map_at_1000", "ndcg_at_10"],
    "Classification": ["accuracy", "recall_weighted"],
    "Summarization": ["cosine_spearman", "dot_pearson"],
    "BitextMining": ["accuracy", "recall"],
}
CASES = [(kind, metric) for kind, metrics in MEANS.items() for metric in metrics]
NO_MEANS = [
    *((kind, metric) for kind, (metric, _) in MAKERS.items() if kind not in MEANS),
    ("BitextMining", "f1"),
    ("Classification", "f1"),
    ("Retrieval", "nauc_ndcg_at_10_max"),
]


class Table:
    """A warehouse with the outcomes of one model on one pool."""

    def __init__(self, folder: Path, data: TaskData) -> None:
        self.pool: Pool = draw_pool(data, CAPS)
        scored = score_pool(self.pool, vectors_of(self.pool))
        self.outcomes, self.pool_score = scored.outcomes.copy(), scored.pool_score
        self.n_items = len(self.pool.items)
        self.metric = data.description.main_metric
        self._warehouse = Warehouse(folder / "writer.duckdb", folder / "mteblite.duckdb")

    def violations(self, number: int = 2) -> pd.DataFrame:
        """Return what a check (by default, that of the mean) has to complain of."""
        items, model = self.pool.items, {"pool_task": "T", "model": "m"}
        known = items["item_id"].iloc[: len(self.outcomes)]
        own = pd.DataFrame({"item_id": known, "outcome": self.outcomes})
        stats = pd.DataFrame([{"n_items": self.n_items}])
        score = pd.DataFrame([{"pool_score": self.pool_score, "n_items": self.n_items}])
        facts = type_facts(self.pool.task_type, self.metric)
        tables: list[tuple[str, dict[str, str], pd.DataFrame]] = [
            ("suites.suite_tasks", {"suite": "s", "pool_task": "T"}, pd.DataFrame([facts])),
            ("pools.shared_pool_items", {"pool_task": "T"}, items),
            ("pools.shared_pool_stats", {"pool_task": "T"}, stats),
            ("outcomes.shared_item_outcomes", model, own),
            ("outcomes.shared_pool_scores", model, score),
        ]
        with self._warehouse.session() as connection:
            for name, key, rows in tables:
                replace_partition(connection, name, key, rows)
        self._warehouse.publish()
        return self._warehouse.query(CHECKS[number].violations)


def by(metric: str, data: TaskData) -> TaskData:
    """The same data scored by another metric."""
    return replace(data, description=replace(data.description, main_metric=metric))


@pytest.mark.parametrize(("kind", "metric"), CASES)
def test_the_mean_of_the_outcomes_is_the_score_and_any_other_number_is_told(
    tmp_path: Path, kind: str, metric: str
) -> None:
    table = Table(tmp_path, by(metric, task(kind)))
    assert table.violations().empty
    table.pool_score += 1e-4
    assert table.violations()["model"].tolist() == ["m"]
    table.pool_score -= 1e-4
    table.outcomes[5] += 0.01
    assert len(table.violations()) == 1


@pytest.mark.parametrize(("kind", "metric"), NO_MEANS)
def test_what_is_no_mean_over_items_is_not_held_to_be_one(
    tmp_path: Path, kind: str, metric: str
) -> None:
    table = Table(tmp_path, by(metric, task(kind)))
    if metric == "nauc_ndcg_at_10_max":
        table.outcomes[:] = 0.5
    assert table.violations().empty


def _without_preference(documents: int) -> dict[str, Any]:
    """Summaries, the first few documents of which have one human score for all of them."""
    cell = summarization(np.random.default_rng(7))
    cell["documents"].loc[: documents - 1, "relevance"] = pd.Series([[3.0] * 5] * documents)
    return cell


def test_documents_without_an_outcome_leave_the_mean_of_their_cell(tmp_path: Path) -> None:
    cells = [_without_preference(11), summarization(np.random.default_rng(1))]
    table = Table(tmp_path, task("Summarization", cells))
    undefined = int(np.isnan(table.outcomes).sum())
    assert 0 < undefined < 12
    # a plain mean over all documents is another number: cells count alike, whatever they lack
    assert abs(np.nanmean(table.outcomes) - table.pool_score) > 1e-4
    assert table.violations().empty
    table.outcomes[np.isnan(table.outcomes)] = 0.0
    assert len(table.violations()) == 1, "what is not defined was counted as 0"


def test_a_cell_without_any_outcome_has_no_score(tmp_path: Path) -> None:
    cells = [_without_preference(30), summarization(np.random.default_rng(1))]
    table = Table(tmp_path, task("Summarization", cells))
    assert np.isnan(table.pool_score)
    assert table.violations().empty
    table.pool_score = float(np.nanmean(table.outcomes))
    assert len(table.violations()) == 1, "a score where one of its cells has none"


def test_a_score_that_is_missing_is_told(tmp_path: Path) -> None:
    table = Table(tmp_path, task("Retrieval"))
    table.pool_score = float("nan")
    assert len(table.violations()) == 1


def test_outcomes_out_of_range_are_told(tmp_path: Path) -> None:
    table = Table(tmp_path, task("Summarization"))
    assert table.outcomes.min() < 0
    assert table.violations(0).empty
    table.outcomes[0] = -1.1
    assert len(table.violations(0)) == 1
    table = Table(tmp_path, task("Retrieval"))
    table.outcomes[0] = -0.1
    assert len(table.violations(0)) == 1
    table.outcomes[0] = np.inf
    assert len(table.violations(0)) == 1


def test_an_item_without_a_row_is_told(tmp_path: Path) -> None:
    table = Table(tmp_path, task("STS"))
    assert table.violations(1).empty
    table.outcomes = table.outcomes[:-1]
    assert len(table.violations(1)) == 1
