"""Full scores: which cells count, which source wins, what is refused and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mteblite.reference_scores.registry_facts import RegistryFacts
from mteblite.suites.task_description import TaskDescription
from mteblite_resources.home import Home
from mteblite_resources.results_source import (
    FullScore,
    QuarantinedScore,
    RefusedScore,
    ResultsSource,
    official_lookup,
    read_full_score,
    record_checksum,
    result_path,
)
from mteblite_resources.score_sources import ScoreSources

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
    ("value", "why"), [(float("nan"), "not a number"), (None, "no main score"), (55.1, "fraction")]
)
def test_unusable_scores_are_refused_with_the_reason(
    tmp_path: Path, value: float | None, why: str
) -> None:
    write(tmp_path, "r", {"en": 0.5, "ar": value})
    with pytest.raises(RefusedScore, match=rf"\('test', 'ar'\).*{why}"):
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


def official(**changes: Any) -> pd.DataFrame:
    """The official score of org/m on T."""
    row = {
        "task": "T", "model": "org/m", "main_score": 0.6, "revision": "pinned",
        "mteb_version": "2.1.0", "refused": "",
    }  # fmt: skip
    return pd.DataFrame([{**row, **changes}])


def test_official_scores_are_looked_up_by_the_present_name(tmp_path: Path) -> None:
    lookup = official_lookup(official(), lambda name: {"former/m": "org/m"}.get(name, name))
    chain = ResultsSource(["local", "official"], local=tmp_path, official=lookup)
    for name in ("org/m", "former/m"):
        assert chain.full_score(name, "r", TASK) == FullScore(0.6, "official", "pinned", "2.1.0")
    assert chain.full_score("org/m+norm", "r", TASK) is None
    write(tmp_path, "r", {"en": 0.2, "ar": 0.4})
    found = chain.full_score("org/m", "r", TASK)
    assert found is not None
    assert found.source == "local"


def test_a_refused_official_score_is_told_apart_and_hides_no_other(tmp_path: Path) -> None:
    for change, why in (
        ({"refused": "broken run: exact zeros in 9 tasks"}, "broken run"),
        ({"main_score": float("nan")}, "no number"),
    ):
        lookup = official_lookup(official(**change))
        chain = ResultsSource(["official", "local"], local=tmp_path / "none", official=lookup)
        with pytest.raises(QuarantinedScore, match=f"score of org/m on T is refused: {why}"):
            chain.full_score("org/m", "r", TASK)
    write(tmp_path, "r", {"en": 0.2, "ar": float("nan")})
    chain = ResultsSource(["official", "local"], local=tmp_path, official=lookup)
    with pytest.raises(RefusedScore, match=r"refused: no number; .* main_score is nan") as error:
        chain.full_score("org/m", "r", TASK)
    assert not isinstance(error.value, QuarantinedScore)  # a file of one's own can be mended
    write(tmp_path, "r", {"en": 0.2, "ar": 0.4})
    found = chain.full_score("org/m", "r", TASK)
    assert found is not None
    assert found.source == "local"


def test_own_files_of_the_old_format_are_read_with_mtebs_names(tmp_path: Path) -> None:
    path = write(tmp_path, "r", {})
    path.write_text(
        json.dumps({
            "mteb_dataset_name": "T", "mteb_version": "1.1.1",
            "test": {"en": {"cos_sim": {"spearman": 0.5}}, "ar": {"cos_sim": {"spearman": 0.3}}},
        })
    )  # fmt: skip
    facts = RegistryFacts(task_metrics={"T": "cosine_spearman"})
    score = ResultsSource(["local"], local=tmp_path, facts=lambda: facts).full_score(
        "org/m", "r", TASK
    )
    assert score == FullScore(pytest.approx(0.4), "local", "r", "1.1.1")


def test_a_checkout_is_a_local_folder_too(tmp_path: Path) -> None:
    write(tmp_path / "results", "r", {"en": 0.2, "ar": 0.4})
    score = ResultsSource(["local"], local=tmp_path).full_score("org/m", "r", TASK)
    assert score is not None
    assert score.main_score == pytest.approx(0.3)


def test_of_own_data_and_sample_tasks_a_run_of_ones_own_is_the_last_source(tmp_path: Path) -> None:
    """Nobody else has scores of them, so `official` alone, or unset, must not end the suite."""
    home = Home(tmp_path)
    unset = ScoreSources(home, None)
    assert unset.usable(["official"], of_mteb=False) == ["run"]
    with pytest.raises(ValueError, match="MTEBLITE_OFFICIAL_SCORES"):
        unset.usable(["official"])
    located = ScoreSources(home, tmp_path)
    assert located.usable(["official"], of_mteb=False) == ["official", "run"]
    assert located.usable(["official"]) == ["official"]
    for order in (["run", "official"], ["local", "official", "run"]):
        assert located.usable(order, of_mteb=False) == order


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match=r"unknown source .*'web'.*run, local, official"):
        ResultsSource(["web"])
    for name in ("official", "local"):
        with pytest.raises(ValueError, match=f"'{name}' need a path"):
            ResultsSource([name])


def test_a_changed_result_of_an_own_run_is_refused(tmp_path: Path) -> None:
    chain = ResultsSource(["run"], run=tmp_path)
    path = write(tmp_path, "r", {"en": 0.4, "ar": 0.4})
    assert chain.full_score("org/m", "r", TASK) is not None  # of a version without records
    record_checksum(path)
    assert chain.full_score("org/m", "r", TASK) is not None
    path.write_text(path.read_text().replace("0.4", "0.9"))
    with pytest.raises(RefusedScore, match="does not hold what the run of mteb wrote: delete it"):
        chain.full_score("org/m", "r", TASK)
    path.unlink()
    assert chain.full_score("org/m", "r", TASK) is None
