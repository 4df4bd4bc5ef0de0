"""Scores that cannot be right are refused, odd ones noted, and all others left alone."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mteblite.reference_scores.low_rank import robust_residuals
from mteblite.reference_scores.suspicion import suspicious_cells
from mteblite_resources.quarantine import fitted_benchmarks

MODELS, TASKS, RANK = 60, 40, 4


@pytest.fixture
def sound() -> pd.DataFrame:
    """Scores of rank four with a little noise; two subsets per task, one of them English.

    Every task depends on the skills as much as any other.
    """
    rng = np.random.default_rng(3)
    skill = rng.normal(size=(MODELS, RANK))
    level = rng.uniform(0.45, 0.65, size=TASKS)
    loadings = rng.normal(size=(RANK, TASKS))
    loadings *= 0.06 / np.linalg.norm(loadings, axis=0)
    scores = level + skill @ loadings + 0.005 * rng.normal(size=(MODELS, TASKS))
    rows = [
        (f"m{m:02}", "r", f"t{t:02}", "test", subset, scores[m, t] - minus)
        for m in range(MODELS)
        for t in range(TASKS)
        for subset, minus in (("en", 0.0), ("de", 0.05))
    ]
    columns = ["model_name", "revision", "task_name", "split", "hf_subset", "main_score"]
    return pd.DataFrame(rows, columns=columns)


def place(cells: pd.DataFrame, model: str, task: str, subset: str = "en") -> pd.Series:
    return (
        (cells["model_name"] == model)
        & (cells["task_name"] == task)
        & (cells["hf_subset"] == subset)
    )


def test_sound_scores_pass(sound: pd.DataFrame) -> None:
    assert suspicious_cells(sound).empty
    assert suspicious_cells(sound.iloc[:0]).empty


def test_negative_scores_are_no_matter(sound: pd.DataFrame) -> None:
    sound["main_score"] -= 0.6  # as instruction retrieval and correlations may be
    assert suspicious_cells(sound).empty


def test_an_exact_zero_is_refused_where_others_are_far_from_it(sound: pd.DataFrame) -> None:
    sound.loc[place(sound, "m07", "t03", "de"), "main_score"] = 0.0
    (found,) = suspicious_cells(sound).to_dict("records")
    assert (found["model_name"], found["task_name"], found["hf_subset"]) == ("m07", "t03", "de")
    assert found["decision"] == "refused"
    assert found["reason"].startswith("exact zero; the median of 59 other models is 0.")


def test_an_exact_zero_is_taken_where_others_are_near_it(sound: pd.DataFrame) -> None:
    column = (sound["task_name"] == "t03") & (sound["hf_subset"] == "de")
    sound.loc[column, "main_score"] = np.linspace(0.001, 0.3, column.sum())
    sound.loc[place(sound, "m07", "t03", "de"), "main_score"] = 0.0
    (found,) = suspicious_cells(sound).to_dict("records")
    assert found["decision"] == "taken"


def test_zeros_in_many_tasks_make_the_whole_revision_a_broken_run(sound: pd.DataFrame) -> None:
    for task in ("t00", "t01", "t02", "t03", "t04"):
        sound.loc[place(sound, "m07", task), "main_score"] = 0.0
    found = suspicious_cells(sound)
    broken = found[found["reason"].str.startswith("broken run: exact zeros in 5 tasks")]
    assert set(broken["model_name"]) == {"m07"}
    assert len(broken) == 2 * TASKS
    assert (broken["decision"] == "refused").all()


def test_a_score_divided_by_100_twice_is_refused_with_its_whole_file(sound: pd.DataFrame) -> None:
    for subset in ("en", "de"):
        sound.loc[place(sound, "m07", "t03", subset), "main_score"] /= 100
    found = suspicious_cells(sound)
    assert set(found["hf_subset"]) == {"en", "de"}
    assert found["reason"].str.contains("divided by 100 twice").all()
    assert (found["decision"] == "refused").all()


def test_outliers_below_are_refused_and_above_noted(sound: pd.DataFrame) -> None:
    sound.loc[place(sound, "m07", "t03"), "main_score"] -= 0.3
    sound.loc[place(sound, "m09", "t05"), "main_score"] += 0.3
    found = suspicious_cells(sound).set_index("model_name")
    assert found["decision"].to_dict() == {"m07": "refused", "m09": "taken"}
    assert "robust sd below a rank-4 fit" in found.loc["m07", "reason"]
    assert "robust sd above a rank-4 fit" in found.loc["m09", "reason"]


def test_the_order_of_rows_does_not_matter(sound: pd.DataFrame) -> None:
    sound.loc[place(sound, "m07", "t03"), "main_score"] -= 0.3
    sound.loc[place(sound, "m08", "t04"), "main_score"] = 0.0
    again = suspicious_cells(sound.sample(frac=1, random_state=0)).sort_index()
    pd.testing.assert_frame_equal(again, suspicious_cells(sound).sort_index())


def test_residuals_of_a_low_rank_matrix_are_small_and_nan_stays() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 12))
    scores[3, 4] = np.nan
    far = robust_residuals(scores)
    assert np.isnan(far[3, 4])
    assert np.nanmax(np.abs(far)) < 1
    assert np.isnan(robust_residuals(np.full((3, 2), np.nan))).all()


def test_columns_count_alike_whatever_their_spread(sound: pd.DataFrame) -> None:
    """A task whose scores lie close together is fitted, and judged, like one of wide spread."""
    english = sound[sound["hf_subset"] == "en"]
    wide = english.pivot(index="model_name", columns="task_name", values="main_score")
    scores = wide.to_numpy(copy=True)
    far = robust_residuals(scores)
    assert np.abs(far).max() < 8
    scores[:, 3] /= 10
    np.testing.assert_allclose(robust_residuals(scores), far, atol=1e-6)


def test_misfit_is_no_outlier_where_it_is_the_rule() -> None:
    rng = np.random.default_rng(5)
    scores = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 30)) + 0.02 * rng.normal(size=(80, 30))
    scores[:, 7] = rng.normal(size=80)
    far = robust_residuals(scores)
    assert np.abs(far[:, 7]).max() < 8
    scores[11, 7] += 20
    assert np.argmax(np.abs(robust_residuals(scores)[:, 7])) == 11
    assert np.abs(robust_residuals(scores)[11, 7]) > 8


@pytest.fixture(scope="module")
def public(shared: Path) -> pd.DataFrame:
    """All cells of the public table that count."""
    import duckdb

    with duckdb.connect() as connection:
        cells = connection.execute(
            "SELECT model_name, revision, task_name, split, hf_subset, main_score "
            "FROM read_parquet(?) WHERE lb_pick AND experiment IS NULL AND entry_ix = 0 "
            "AND abs(main_score) <= 1",
            [str(shared / "scores" / "official_scores.parquet")],
        ).df()  # fmt: skip
    return cells.reset_index(drop=True)


@pytest.fixture(scope="module")
def judged(public: pd.DataFrame) -> pd.DataFrame:
    """What stands out among them."""
    return suspicious_cells(public, fitted_benchmarks())


# Scores that the table's notes name as more than 8 robust sd from a rank-4 fit.
OUTLIERS = {
    ("Gameselo/STS-multilingual-mpnet-base-v2", "STS17", "en-en"): "refused",
    ("Gameselo/STS-multilingual-mpnet-base-v2", "STSBenchmark", "default"): "refused",
    ("HIT-TMG/KaLM-embedding-multilingual-mini-instruct-v1", "SummEvalSummarization.v2",
     "default"): "refused",
    ("Jaume/gemma-2b-embeddings", "SummEvalSummarization.v2", "default"): "refused",
    ("Haon-Chen/e5-omni-7B", "STS22.v2", "en"): "refused",
    ("Tevatron/OmniEmbed-v0.1", "STS22.v2", "en"): "refused",
    ("mixedbread-ai/deepset-mxbai-embed-de-large-v1", "MindSmallReranking", "default"): "refused",
    ("IEITYuan/Yuan-embedding-2.0-en", "SCIDOCS", "default"): "taken",  # high, not broken
}  # fmt: skip


@pytest.mark.parametrize("place", OUTLIERS, ids=lambda place: f"{place[0]}-{place[1]}")
def test_known_outliers_of_the_public_results(
    judged: pd.DataFrame, place: tuple[str, str, str]
) -> None:
    keys = pd.MultiIndex.from_frame(judged[["model_name", "task_name", "hf_subset"]])
    (found,) = judged[keys == place].to_dict("records")
    assert found["decision"] == OUTLIERS[place]
    away = re.match(r"outlier: [\d.]+ lies (\d+) robust sd (\w+) a rank-4 fit", found["reason"])
    assert away is not None, found["reason"]
    assert int(away[1]) >= 9
    assert away[2] == ("below" if found["decision"] == "refused" else "above")


def test_known_defects_of_the_public_results(public: pd.DataFrame, judged: pd.DataFrame) -> None:
    """The broken run and the wrong unit; little else is refused."""
    refused = judged[judged["decision"] == "refused"]
    twice = refused[refused["reason"].str.contains("divided by 100 twice")]
    twice = twice[twice["model_name"] == "Gameselo/STS-multilingual-mpnet-base-v2"]
    assert {"STS17", "STSBenchmark"} <= set(twice["task_name"])
    broken = refused[refused["reason"].str.startswith("broken run")]
    assert ("jinaai/jina-embeddings-v2-base-en", "6e85f575bc273f1fd840a658067d0157933c83f0") in set(
        zip(broken["model_name"], broken["revision"], strict=True)
    )
    outliers = refused[refused["reason"].str.startswith("outlier")]
    assert len(outliers) < 100
    assert len(refused) < 0.02 * len(public)


def test_a_benchmark_gets_a_fit_of_its_own(sound: pd.DataFrame) -> None:
    """Of subsets, too, that are not the headline of their task."""
    german = [(f"t{t:02}", "test", "de") for t in range(20)]
    sound.loc[place(sound, "m07", "t03", "de"), "main_score"] -= 0.3
    assert suspicious_cells(sound).empty
    (found,) = suspicious_cells(sound, {"B(deu)": german}).to_dict("records")
    assert (found["model_name"], found["hf_subset"]) == ("m07", "de")
    assert "below a rank-4 fit of B(deu)" in found["reason"]


def test_a_score_that_two_fits_refuse_stands_out_once(sound: pd.DataFrame) -> None:
    sound.loc[place(sound, "m07", "t03"), "main_score"] -= 0.3
    english = [(f"t{t:02}", "test", "en") for t in range(20)]
    assert len(suspicious_cells(sound, {"B": english})) == 1
    assert len(suspicious_cells(sound, {"none that is known": [("x", "test", "en")]})) == 1
