"""Full scores: which cells count, which source wins, what is refused and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mteblite_assets.pools.task_data import TaskDescription
from mteblite_resources.results_source import (
    RefusedScore,
    ResultsSource,
    read_full_score,
    result_path,
)

TASK = TaskDescription("T", "STS", "cosine_spearman", ("test",), ("en", "ar"))


def write(folder: Path, revision: str, scores: dict[str, Any], model: str = "org/m") -> Path:
    """A result file with one main score per subset."""
    path = result_path(folder, model, revision, "T")
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = [{"hf_subset": h, "languages": [], "main_score": s} for h, s in scores.items()]
    path.write_text(
        json.dumps({"task_name": "T", "mteb_version": "2.26.24", "scores": {"test": entries}})
    )
    return path


def test_mean_over_the_needed_cells_only(tmp_path: Path) -> None:
    write(tmp_path, "r", {"en": 0.5, "ar": 0.3, "de": 0.9})
    score = read_full_score(tmp_path, "org/m", "r", TASK)
    assert score is not None
    assert score.main_score == pytest.approx(0.4)
    assert (score.source, score.revision, score.mteb_version) == ("run", "r", "2.26.24")


def test_an_absent_cell_is_no_score(tmp_path: Path) -> None:
    assert read_full_score(tmp_path, "org/m", "r", TASK) is None
    write(tmp_path, "r", {"en": 0.5})
    assert read_full_score(tmp_path, "org/m", "r", TASK) is None


@pytest.mark.parametrize(
    ("value", "why"), [(float("nan"), "not a number"), (None, "not a number"), (55.1, "fraction")]
)
def test_unusable_scores_are_refused_with_the_reason(
    tmp_path: Path, value: float | None, why: str
) -> None:
    write(tmp_path, "r", {"en": 0.5, "ar": value})
    with pytest.raises(RefusedScore, match=rf"\('test', 'ar'\) is .*{why}"):
        read_full_score(tmp_path, "org/m", "r", TASK)


def test_files_that_are_no_results_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "r", {}).write_text('{"mteb_dataset_name": "T", "test": {}}')
    with pytest.raises(RefusedScore, match="no result file"):
        read_full_score(tmp_path, "org/m", "r", TASK)


def test_first_source_with_a_score_wins(tmp_path: Path) -> None:
    run, local = tmp_path / "run", tmp_path / "local"
    write(local, "other", {"en": 0.2, "ar": 0.2})
    chain = ResultsSource(["run", "local"], run=run, local=local)
    score = chain.full_score("org/m", "r", TASK)
    assert score is not None
    assert (score.source, score.main_score) == ("local", 0.2)
    write(run, "r", {"en": 0.4, "ar": 0.4})
    score = chain.full_score("org/m", "r", TASK)
    assert score is not None
    assert (score.source, score.main_score) == ("run", 0.4)
    assert chain.full_score("org/other", "r", TASK) is None


def test_a_refused_score_does_not_hide_a_later_source(tmp_path: Path) -> None:
    run, local = tmp_path / "run", tmp_path / "local"
    write(run, "r", {"en": 0.4, "ar": float("nan")})
    chain = ResultsSource(["run", "local"], run=run, local=local)
    with pytest.raises(RefusedScore, match="not a number"):
        chain.full_score("org/m", "r", TASK)
    write(local, "r", {"en": 0.2, "ar": 0.2})
    score = chain.full_score("org/m", "r", TASK)
    assert score is not None
    assert score.source == "local"


def test_own_runs_of_another_revision_never_count(tmp_path: Path) -> None:
    write(tmp_path, "old", {"en": 0.4, "ar": 0.4})
    assert ResultsSource(["run"], run=tmp_path).full_score("org/m", "new", TASK) is None


def test_several_local_revisions_are_no_guess(tmp_path: Path) -> None:
    write(tmp_path, "a", {"en": 0.4, "ar": 0.4})
    write(tmp_path, "b", {"en": 0.2, "ar": 0.2})
    chain = ResultsSource(["local"], local=tmp_path)
    with pytest.raises(RefusedScore, match=r"2 revisions \(a, b\)"):
        chain.full_score("org/m", "c", TASK)
    score = chain.full_score("org/m", "b", TASK)
    assert score is not None
    assert score.main_score == 0.2


def test_settings_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown source .*'web'.*run, local, official"):
        ResultsSource(["web"])
    with pytest.raises(ValueError, match="'official' need a path"):
        ResultsSource(["official"])
    gone = ResultsSource(["official"], official=tmp_path / "gone.parquet")
    with pytest.raises(ValueError, match="no table of official scores"):
        gone.full_score("org/m", "r", TASK)


def test_official_leaderboard_means(shared: Path) -> None:
    """The published means of MTEB(eng, v2), by task and by type."""
    chain = ResultsSource(["official"], official=shared / "scores" / "official_scores.parquet")
    cells = pd.read_parquet(shared / "scores" / "benchmark_tasks.parquet")
    cells = cells[cells["benchmark"] == "MTEB(eng, v2)"]
    for model, by_task, by_type in (
        ("sentence-transformers/all-MiniLM-L6-v2", 59.03, 55.93),
        ("intfloat/e5-base-v2", 62.67, 59.43),
        ("BAAI/bge-large-en-v1.5", 65.89, 61.87),
    ):
        rows = []
        for (task, task_type), group in cells.groupby(["task_name", "type"]):
            splits, subsets = group["split"].unique(), group["hf_subset"].unique()
            description = TaskDescription(task, task_type, "", tuple(splits), tuple(subsets))
            score = chain.full_score(model, "", description)
            assert score is not None, task
            rows.append({"type": task_type, "score": score.main_score})
        scores = pd.DataFrame(rows)
        assert len(scores) == 41
        assert 100 * scores["score"].mean() == pytest.approx(by_task, abs=0.005)
        means = scores.groupby("type")["score"].mean()
        assert 100 * means.mean() == pytest.approx(by_type, abs=0.005)
