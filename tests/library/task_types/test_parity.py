"""With every cap off, a pool's score is the main score of mteb.evaluate, for every task type.

The tasks are small mteb tasks held in memory, the encoder a deterministic function of the text.
Reading goes through the product's own task source, so this holds the whole path against mteb.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.in_memory_tasks import TASKS, encoder, vector

from mteblite.pools.pool import Pool
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.scoring import score_pool

WHOLE = PoolSettings(max_items=None, bm25_top=None, max_relevant=None, random_documents=None)
PER_ITEM = {
    name
    for name in TASKS
    if name.split()[0] in ("classification", "summarization", "retrieval", "reranking")
}


def _pool(make: Callable[[], Any], metrics: tuple[str, ...] = ()) -> Pool:
    from mteblite.tasks.task_cells import task_data
    from mteblite.tasks.task_lookup import description_of

    task = make()
    about = replace(description_of(task, source="mteb"), metrics=metrics)
    return draw_pool(task_data(task, about), WHOLE)


@pytest.mark.parametrize("name", TASKS)
def test_whole_pool_scores_as_mteb_does(name: str) -> None:
    import mteb

    pool = _pool(TASKS[name])
    vectors = np.stack([vector(text) for text in pool.texts["text"]])
    score = score_pool(pool, vectors)
    result = mteb.evaluate(encoder(), TASKS[name](), cache=None, show_progress_bar=False)
    official = result.task_results[0].get_score()
    assert score.pool_score == pytest.approx(official, abs=1e-6)
    assert abs(official) > 0.01, "a score of zero would agree by accident"
    if name in PER_ITEM:
        known = ~np.isnan(score.outcomes)
        items = pool.items[known]
        cells = items.assign(outcome=score.outcomes[known]).groupby(["split", "hf_subset"])
        assert cells["outcome"].mean().mean() == pytest.approx(score.pool_score, abs=6e-6)


@pytest.mark.parametrize("similarity", ["dot", "euclidean"])
@pytest.mark.parametrize("name", ["retrieval", "reranking", "bitext"])
def test_search_is_by_the_similarity_of_the_model(name: str, similarity: str) -> None:
    import mteb

    from mteblite.task_types.bitext_mining import outcomes as bitext_mining
    from mteblite.task_types.retrieval import outcomes as retrieval

    pool = _pool(TASKS[name])
    vectors = np.stack([vector(text) for text in pool.texts["text"]])
    module = bitext_mining if name == "bitext" else retrieval
    score = module.score_pool(pool, vectors, similarity=similarity)
    model = encoder(similarity)
    result = mteb.evaluate(model, TASKS[name](), cache=None, show_progress_bar=False)
    assert score.pool_score == pytest.approx(result.task_results[0].get_score(), abs=1e-6)
    assert score.pool_score != module.score_pool(pool, vectors).pool_score


NOT_METRICS = ("main_score", "hf_subset", "languages", "evaluation_time")


@pytest.mark.parametrize("name", TASKS)
def test_every_metric_that_mteb_reports_can_be_had(name: str) -> None:
    import mteb

    result = mteb.evaluate(encoder(), TASKS[name](), cache=None, show_progress_bar=False)
    (cells,) = result.task_results[0].scores.values()
    merged = name == "reranking of sub-queries"
    reported = {
        metric: np.mean([cell[metric] for cell in cells])
        for metric, value in cells[0].items()
        if isinstance(value, float)
        and metric not in NOT_METRICS
        and metric.startswith("max_over") == merged
    }
    assert len(reported) >= 4
    pool = _pool(TASKS[name], tuple(reported))
    found = score_pool(pool, np.stack([vector(text) for text in pool.texts["text"]])).metrics
    assert set(found) == set(reported)
    for metric, value in reported.items():
        assert found[metric] == pytest.approx(value, abs=2e-6, nan_ok=True), metric


@pytest.mark.parametrize("task", ["LEMBNeedleRetrieval", "LEMBPasskeyRetrieval"])
def test_long_embed_is_scored_at_rank_1_on_every_length(task: str) -> None:
    from mteblite.tasks.mteb_tasks import MtebTasks

    described = MtebTasks().benchmark("LongEmbed").tasks[task].description
    assert described.main_metric == "ndcg_at_1"
    assert described.splits[:2] == ("test_256", "test_512")
