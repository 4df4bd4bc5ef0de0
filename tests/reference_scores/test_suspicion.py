"""Scores that cannot be right are refused, odd ones noted, and all others left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mteblite_assets.reference_scores.low_rank import robust_residuals
from mteblite_assets.reference_scores.suspicion import suspicious_cells

MODELS, TASKS, RANK = 60, 40, 4


@pytest.fixture
def sound() -> pd.DataFrame:
    """Scores of rank four with a little noise; two subsets per task, one of them English."""
    rng = np.random.default_rng(3)
    skill = rng.normal(size=(MODELS, RANK))
    level = rng.uniform(0.45, 0.65, size=TASKS)
    scores = level + 0.03 * skill @ rng.normal(size=(RANK, TASKS)) + 0.005 * rng.normal(
        size=(MODELS, TASKS))  # fmt: skip
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


def test_known_defects_of_the_public_results(shared: Path) -> None:
    """The broken run, the wrong unit and the outlier that the table's notes name."""
    import duckdb

    with duckdb.connect() as connection:
        cells = connection.execute(
            "SELECT model_name, revision, task_name, split, hf_subset, main_score "
            "FROM read_parquet(?) s SEMI JOIN read_parquet(?) b USING (task_name, split, hf_subset)"
            " WHERE lb_pick AND experiment IS NULL AND entry_ix = 0 AND isfinite(main_score)",
            [str(shared / "scores" / n) for n in
             ("official_scores.parquet", "benchmark_tasks.parquet")],
        ).df()  # fmt: skip
    cells = cells[cells["main_score"].abs() <= 1].reset_index(drop=True)
    found = suspicious_cells(cells)
    refused = found[found["decision"] == "refused"]
    twice = refused[refused["reason"].str.contains("divided by 100 twice")]
    twice = twice[twice["model_name"] == "Gameselo/STS-multilingual-mpnet-base-v2"]
    assert {"STS17", "STSBenchmark"} <= set(twice["task_name"])
    broken = refused[refused["reason"].str.startswith("broken run")]
    assert ("jinaai/jina-embeddings-v2-base-en", "6e85f575bc273f1fd840a658067d0157933c83f0") in set(
        zip(broken["model_name"], broken["revision"], strict=True)
    )
    yuan = found[(found["model_name"] == "IEITYuan/Yuan-embedding-2.0-en")
                 & (found["task_name"] == "SCIDOCS")]  # fmt: skip
    assert yuan["decision"].tolist() == ["taken"]  # high, not broken
    low = refused[refused["task_name"] == "STS22.v2"]["model_name"]
    assert {"Haon-Chen/e5-omni-7B", "Tevatron/OmniEmbed-v0.1"} <= set(low)
    assert len(refused) < 0.02 * len(cells)
