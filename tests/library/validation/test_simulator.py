"""The simulated zoo is what it says, and what must hold on it holds at a small size."""

from __future__ import annotations

import numpy as np
import pytest
from support import simulator
from support.fits import predict_held_out

from mteblite.validation.metrics import validation_metrics

pytestmark = pytest.mark.skipif(
    not simulator.available(), reason="the official scores of ../shared/scores are not there"
)


@pytest.fixture(scope="module")
def matrix() -> simulator.Matrix:
    return simulator.load_matrix()


@pytest.fixture(scope="module")
def models(matrix) -> list[str]:
    return simulator.reference_models(matrix)


def test_the_zoo_has_the_size_of_the_published_one(matrix, models):
    families = {matrix.families[m] for m in models}
    assert (len(models), len(families), len(matrix.types)) == (45, 33, 41)
    assert 0.04 < matrix.macro.std() < 0.07
    zoo = simulator.make_zoo(matrix, models, n_items=50)
    assert not set(zoo.public.table["model"]) & set(models)
    assert len(zoo.public.table) + 45 == len(matrix.scores)


@pytest.mark.parametrize("level", ["official", "surrogate"])
def test_outcomes_have_the_spread_and_mean_that_they_should(matrix, models, level):
    zoo = simulator.make_zoo(matrix, models, n_items=2000, level=level)
    for evidence in zoo.evidences:
        if len(evidence.items) < 2000:
            continue
        gap = evidence.pool_scores - evidence.full_scores
        assert np.abs(gap).mean() < 0.03
        if evidence.kind == "per_item":
            assert 0 <= evidence.outcomes.min() <= evidence.outcomes.max() <= 1
            spread = np.median(evidence.outcomes.std(axis=1))
            # Where scores are near 1, even zeros and ones spread less.
            middle = np.median(evidence.full_scores)
            expected = min(
                simulator.ITEM_SD[evidence.task_type], 0.85 * np.sqrt(middle * (1 - middle))
            )
            assert spread == pytest.approx(expected, rel=0.25)
        else:
            seen = np.stack(evidence.observations)[:, :, 0]
            expected = simulator.STATISTIC_SD[level][evidence.task_type]
            assert np.median(seen.std(axis=1)) == pytest.approx(expected, rel=0.1)


def test_pools_that_are_the_whole_task_have_its_score(matrix, models):
    zoo = simulator.make_zoo(matrix, models, n_items=1000)
    by_task = {e.task: e for e in zoo.evidences}
    whole = by_task["SummEvalSummarization.v2"]
    inside = (whole.full_scores > 0.001) & (whole.full_scores < 0.999)
    assert whole.pool_scores[inside] == pytest.approx(whole.full_scores[inside], abs=1e-6)
    for task in ("TRECCOVID", "Touche2020Retrieval.v3"):
        gap = by_task[task].pool_scores - by_task[task].full_scores
        assert 0.005 < gap.std() < 0.02
    cut = simulator.make_zoo(matrix, models, n_items=40)
    gap = next(e.pool_scores - e.full_scores for e in cut.evidences if e.task == whole.task)
    assert gap.std() > 0.01


def test_models_may_lack_tasks(matrix, models):
    zoo = simulator.make_zoo(matrix, models, n_items=30, missing=0.3)
    sizes = [len(e.models) for e in zoo.evidences]
    assert 0.6 * 45 < np.mean(sizes) < 0.8 * 45


@pytest.mark.long
def test_joint_calibration_beats_random_items_at_equal_k(matrix, models):
    zoo = simulator.make_zoo(matrix, models, n_items=200, level="surrogate")
    best = "strat_difficulty/mean/strat_difficulty+blup"
    frame = predict_held_out(
        zoo.evidences, [best, "random/mean+none"], {e.task: 20 for e in zoo.evidences},
        "family_lomo", 0, public=zoo.public, statistic=simulator.mean_statistic, random_draws=10,
    )  # fmt: skip
    table = validation_metrics(frame, zoo.types)
    table = table[table["target"] == "macro"].set_index(["variant", "metric"])["value"]
    assert table[best, "mae"] < 0.75 * table["random/mean+none", "mae"]
    assert table[best, "mae"] < 0.008
    assert table[best, "kendall_tau"] > 0.87
    assert table[best, "coverage_90"] > 0.85
