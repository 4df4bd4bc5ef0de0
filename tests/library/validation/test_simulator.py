"""The simulated zoo is what it says, and what must hold on it holds at a small size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support import public_matrix, simulator
from support.fits import predict_held_out

from mteblite.validation.metrics import validation_metrics

pytestmark = pytest.mark.skipif(
    not public_matrix.available(), reason="the official scores of ../shared/scores are not there"
)


@pytest.fixture(scope="module")
def matrix() -> public_matrix.Matrix:
    return public_matrix.load_matrix()


@pytest.fixture(scope="module")
def models(matrix) -> list[str]:
    return public_matrix.reference_models(matrix)


def test_the_zoo_has_the_size_of_the_published_one(matrix, models):
    families = {matrix.families[m] for m in models}
    assert (len(models), len(families), len(matrix.types)) == (45, 33, 41)
    assert 0.04 < matrix.macro.std() < 0.07
    zoo = simulator.make_zoo(matrix, models, n_items=50)
    assert not set(zoo.public.table["model"]) & set(models)
    assert len(zoo.public.table) + 45 == len(matrix.scores)


def test_scores_that_the_product_refuses_are_left_out(matrix):
    """A record divided by 100 twice, a broken run, a low outlier; high outliers are not taught."""
    refused = {
        "Gameselo/STS-multilingual-mpnet-base-v2", "jinaai/jina-embeddings-v2-base-en",
        "HIT-TMG/KaLM-embedding-multilingual-mini-instruct-v1",
    }  # fmt: skip
    assert not refused & set(matrix.scores.index)
    odd = "IEITYuan/Yuan-embedding-2.0-en"
    zoo = simulator.make_zoo(matrix, [m for m in matrix.scores.index if m != odd][:3], n_items=5)
    row = zoo.public.table.set_index("model").loc[odd]
    assert list(row.index[row.isna()]) == ["SCIDOCS"]


def test_outcomes_have_the_spread_and_mean_that_they_should(matrix, models):
    zoo = simulator.make_zoo(matrix, models, n_items=2000)
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
            seen = np.stack(evidence.observations)
            for column, level in enumerate(("official", "surrogate")):
                expected = simulator.STATISTIC_SD[level][evidence.task_type]
                spread = np.median(seen[:, :, column].std(axis=1))
                assert spread == pytest.approx(expected, rel=0.15)


@pytest.fixture(scope="module")
def correlations(matrix, models) -> pd.DataFrame:
    """With the full score, over models, of both statistics on whole pools of two sizes."""
    rows = []
    for n_items in (500, 4000):
        for e in simulator.make_zoo(matrix, models, n_items=n_items).evidences:
            for place in range(2) if e.observations else ():
                mean = np.stack(e.observations)[:, :, place].mean(axis=1)
                rows.append((n_items, place, np.corrcoef(mean, e.full_scores)[0, 1]))
    return (
        pd.DataFrame(rows, columns=["items", "column", "r"])
        .groupby(["items", "column"])["r"]
        .median()
    )


def test_more_items_mend_the_official_statistic_and_not_the_surrogate(correlations):
    assert correlations[500, 0] < correlations[4000, 0]
    assert correlations[4000, 0] > 0.99
    for n_items in (500, 4000):
        assert 0.80 < correlations[n_items, 1] < 0.88


def test_outcomes_have_the_structure_that_was_measured(matrix, models):
    """Medians over tasks, on sixteen models; see the simulator's docstring."""
    zoo = simulator.make_zoo(matrix, models, n_items=300)
    found = []
    for evidence in zoo.evidences:
        outcomes, families = evidence.outcomes[:16], np.array(evidence.families[:16])
        centred = outcomes - outcomes.mean(axis=1, keepdims=True)
        values = np.linalg.svd(centred - centred.mean(axis=0), compute_uv=False) ** 2
        r = np.corrcoef(outcomes)
        kin = families[:, None] == families
        pairs = np.triu(np.ones(r.shape, dtype=bool), 1)
        found.append((r[pairs & ~kin].mean(), r[pairs & kin].mean(), *values[:2] / values.sum()))
    other, same, first, second = np.median(found, axis=0)
    assert other == pytest.approx(0.38, abs=0.05)
    assert same == pytest.approx(0.68, abs=0.07)
    assert first == pytest.approx(0.21, abs=0.05)
    assert second == pytest.approx(0.17, abs=0.03)


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
    zoo = simulator.make_zoo(matrix, models, n_items=200)
    best, random = "strat_difficulty/mean/strat_difficulty+blup", "random/mean+none"
    uniform = {e.task: 20 for e in zoo.evidences}
    frames = [
        predict_held_out(
            zoo.evidences, [variant], uniform, "family_lomo", 0, public=zoo.public,
            statistic=statistic, random_draws=10,
        )
        for variant, statistic in (
            (best, simulator.surrogate_statistic), (random, simulator.mean_statistic),
        )
    ]  # fmt: skip
    table = validation_metrics(pd.concat(frames), zoo.types)
    table = table[table["target"] == "macro"].set_index(["variant", "metric"])["value"]
    assert table[best, "mae"] < 0.75 * table[random, "mae"]
    assert table[best, "mae"] < 0.01
    assert table[best, "kendall_tau"] > 0.87
    assert table[best, "coverage_90"] > 0.85


@pytest.mark.long
def test_anchors_beat_random_items_with_lines_of_each_task(matrix):
    """As on real tasks, where items are of kinds that k-means on outcomes finds."""
    gaps = []
    for seed in range(2):
        models = public_matrix.reference_models(matrix, seed=seed)
        zoo = simulator.make_zoo(matrix, models, n_items=200, seed=seed)
        anchors, random = "anchor/mean/anchorset", "random/mean"
        frame = predict_held_out(
            zoo.evidences, [anchors, random], {e.task: 20 for e in zoo.evidences},
            "family_lomo", 0, statistic=simulator.mean_statistic, random_draws=10,
        )  # fmt: skip
        table = validation_metrics(frame, zoo.types)
        table = table[(table["target"] == "macro") & (table["metric"] == "mae")]
        error = table.set_index("variant")["value"]
        gaps.append(error[random] - error[anchors])
    assert np.mean(gaps) > 0.001
