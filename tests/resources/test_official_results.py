"""Official results in the warehouse: read once, only what is new, mirror and table alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.official_world import MODEL, REVISION, Official, new_result, put, subsets

from mteblite.lite_scores.aggregation import aggregate
from mteblite.reference_scores.public_models import joint_scores, usable
from mteblite.reference_scores.registry_facts import RegistryFacts
from mteblite.suites.task_description import TaskDescription
from mteblite_resources import official_folder
from mteblite_resources.results_source import official_lookup


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "mirror"
    for task in ("T", "U"):
        put(folder, new_result(task))
        put(folder, new_result(task, scores=subsets(en=0.2)), model="org/n")
    return folder


@pytest.fixture
def world(mirror: Path, tmp_path: Path, registry: Path) -> Official:
    return Official(mirror, tmp_path / "home", registry)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files that an ingestion opens, from here on."""
    noted: list[str] = []
    read_files = official_folder.read_files

    def noting(root: Path, files: Any, facts: RegistryFacts) -> Any:
        noted.extend(path for _, path in files)
        return read_files(root, files, facts)

    monkeypatch.setattr(official_folder, "read_files", noting)
    return noted


def test_nothing_new_opens_no_file_and_changes_nothing(world: Official, opened: list[str]) -> None:
    first = world.ingest()
    assert len(opened) == 4
    before = world.table("official_cells")
    again = world.ingest()
    assert len(opened) == 4
    assert again["n_read"] == 0
    assert again["content"] == first["content"]
    pd.testing.assert_frame_equal(world.table("official_cells"), before)


def test_only_new_changed_and_removed_files_count(
    world: Official, mirror: Path, opened: list[str]
) -> None:
    first = world.ingest()
    state = world.results.state()
    opened.clear()
    put(mirror, new_result("V"), meta=False)
    put(mirror, new_result("T", scores=subsets(default=0.75)), meta=False)
    (mirror / "results" / "org__n" / REVISION / "U.json").unlink()
    assert world.results.state() != state
    found = world.ingest()
    assert sorted(opened) == [f"org__m/{REVISION}/T.json", f"org__m/{REVISION}/V.json"]
    assert found["content"] != first["content"]
    assert world.cells() == {
        (MODEL, "T", "test", "default"): 0.75,
        (MODEL, "U", "test", "default"): 0.5,
        (MODEL, "V", "test", "default"): 0.5,
        ("org/n", "T", "test", "en"): 0.2,
    }


def test_another_name_in_model_meta_holds_for_all_its_files(
    world: Official, mirror: Path, opened: list[str]
) -> None:
    world.ingest()
    opened.clear()
    meta = mirror / "results" / "org__n" / REVISION / "model_meta.json"
    meta.write_text(json.dumps({"name": "org/n (embed_dim=8)", "revision": REVISION}))
    world.ingest()
    assert sorted(opened) == [f"org__n/{REVISION}/T.json", f"org__n/{REVISION}/U.json"]
    assert {model for model, *_ in world.cells()} == {MODEL, "org/n (embed_dim=8)"}


def test_equal_content_has_an_equal_version_wherever_it_lies(
    world: Official, mirror: Path, tmp_path: Path, registry: Path
) -> None:
    first = world.ingest()
    (mirror / "results").rename(tmp_path / "elsewhere")
    other = Official(tmp_path / "elsewhere", tmp_path / "other", registry)
    assert other.ingest()["content"] == first["content"]


def test_a_quarantine_of_earlier_rules_is_made_again_without_reading_a_file(
    world: Official, mirror: Path
) -> None:
    put(mirror, new_result("T9", scores=subsets(en=float("nan"))))
    world.ingest()
    made = world.quarantine()
    assert made == [("refused", "main_score is nan: not a number")]
    with world.warehouse.session() as connection:
        connection.execute("DELETE FROM reference_scores.quarantine")
        connection.execute("UPDATE reference_scores.quarantine_rules SET rules = '1'")
    assert world.ingest()["n_read"] == 0
    assert world.quarantine() == made


def test_many_files_in_processes_give_what_one_process_gives(
    world: Official, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, registry: Path, mirror: Path
) -> None:
    from mteblite_resources import result_reading

    alone = world.ingest()
    monkeypatch.setattr(result_reading, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(result_reading.os, "cpu_count", lambda: 2)
    other = Official(mirror, tmp_path / "other", registry)
    assert other.ingest()["content"] == alone["content"]


def test_no_place_or_a_wrong_one(tmp_path: Path, registry: Path, world: Official) -> None:
    world.ingest()
    unset = Official(None, tmp_path / "home", registry)  # type: ignore[arg-type]
    assert unset.results.state() == "none"
    assert unset.ingest()["n_files"] == 0
    assert unset.cells() == {}
    with pytest.raises(ValueError, match=r"no official scores at .*gone: let MTEBLITE_OFFICIAL"):
        Official(tmp_path / "gone", tmp_path / "home", registry).results.state()
    wrong = tmp_path / "wrong.parquet"
    pd.DataFrame({"model_name": ["m"]}).to_parquet(wrong)
    with pytest.raises(ValueError, match=r"wrong.parquet lacks the column\(s\) .*lb_pick"):
        Official(wrong, tmp_path / "home", registry).ingest()


# --- the public results --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def public(shared: Path, registry: Path, tmp_path_factory: pytest.TempPathFactory) -> Official:
    """The table of all official scores, ingested."""
    if not (shared / "scores" / "official_scores.parquet").exists():
        pytest.skip("the table of official scores is not there")
    official = Official(shared / "scores", tmp_path_factory.mktemp("public"), registry)
    official.ingest()
    return official


@pytest.fixture(scope="module")
def benchmark(shared: Path) -> pd.DataFrame:
    rows = pd.read_parquet(shared / "scores" / "benchmark_tasks.parquet")
    return rows[rows["benchmark"] == "MTEB(eng, v2)"]


@pytest.fixture(scope="module")
def descriptions(benchmark: pd.DataFrame) -> list[TaskDescription]:
    return [
        TaskDescription(task, kind, "", tuple(g["split"].unique()), tuple(g["hf_subset"].unique()))
        for (task, kind), g in benchmark.groupby(["task_name", "type"])
    ]


LEADERBOARD = {
    "sentence-transformers/all-MiniLM-L6-v2": (59.03, 55.93),
    "intfloat/e5-base-v2": (62.67, 59.43),
    "BAAI/bge-large-en-v1.5": (65.89, 61.87),
    "Qwen/Qwen3-Embedding-0.6B": (70.47, 64.72),
}


def sql_leaderboard(shared: Path) -> pd.DataFrame:
    """Means over tasks and over types straight from the table, as the leaderboard has them."""
    import duckdb

    with duckdb.connect() as connection:
        return connection.execute(
            """
            WITH b AS (
                SELECT * FROM read_parquet($tasks) WHERE benchmark = 'MTEB(eng, v2)'
            ), t AS (
                SELECT model_name, registered, task_name, type, avg(main_score) AS score,
                    count(main_score) AS n
                FROM read_parquet($scores) JOIN b USING (task_name, split, hf_subset)
                WHERE lb_pick AND experiment IS NULL AND entry_ix = 0 GROUP BY ALL
            ), k AS (SELECT *, avg(score) OVER (PARTITION BY model_name, type) AS type_mean FROM t)
            SELECT model_name AS model, avg(score) AS mean,
                sum(type_mean / n_type) / count(DISTINCT type) AS macro
            FROM k JOIN (SELECT type, count(DISTINCT task_name) AS n_type FROM b GROUP BY type)
                USING (type)
            WHERE registered AND n > 0 GROUP BY ALL HAVING count(*) = 41
            """,
            {"tasks": str(shared / "scores" / "benchmark_tasks.parquet"),
             "scores": str(shared / "scores" / "official_scores.parquet")},
        ).df()  # fmt: skip


def test_derived_scores_are_the_leaderboard_for_every_complete_model(
    public: Official, shared: Path, descriptions: list[TaskDescription]
) -> None:
    scores = public.scores(descriptions)
    types = {d.task: d.task_type for d in descriptions}
    sound = scores[scores["registered"] & scores["main_score"].notna()]
    sound = sound[~sound["repaired"].str.contains("main score")]
    complete = sound.groupby("model").filter(lambda rows: len(rows) == 41)
    derived = {
        model: aggregate(rows.rename(columns={"main_score": "predicted"}), types)
        for model, rows in complete[["model", "task", "main_score"]].groupby("model")
    }
    wanted = sql_leaderboard(shared).set_index("model")
    assert len(wanted) == 181
    assert set(derived) == set(wanted.index)
    for model, score in derived.items():
        assert score.mean == pytest.approx(wanted.loc[model, "mean"], abs=1e-12), model
        assert score.macro_mean == pytest.approx(wanted.loc[model, "macro"], abs=1e-12), model
    for model, (by_task, by_type) in LEADERBOARD.items():
        assert round(100 * derived[model].mean, 2) == by_task
        assert round(100 * derived[model].macro_mean, 2) == by_type


def test_refused_scores_are_no_reference_scores(
    public: Official, descriptions: list[TaskDescription]
) -> None:
    scores = public.scores(descriptions)
    lookup = official_lookup(scores, public.results.facts.model_name)
    by_task = {d.task: d for d in descriptions}
    good = lookup("BAAI/bge-large-en-v1.5", by_task["STS17"])
    assert good is not None
    assert good.source == "official"
    assert good.revision
    with pytest.raises(ValueError, match=r"STS17 is refused: .*divided by 100 twice"):
        lookup("Gameselo/STS-multilingual-mpnet-base-v2", by_task["STS17"])
    with pytest.raises(ValueError, match="FEVERHardNegatives is refused: broken run"):
        lookup("jinaai/jina-embeddings-v2-base-en", by_task["FEVERHardNegatives"])
    renamed = lookup("voyageai/voyage-3", by_task["STS17"])
    assert renamed is not None
    assert renamed == lookup("mongodb/voyage-3", by_task["STS17"])
    assert lookup("openai/text-embedding-3-small+norm", by_task["STS17"]) is None


def test_a_file_without_the_needed_subset_is_no_score(
    public: Official, descriptions: list[TaskDescription]
) -> None:
    """all-mpnet-base-v2 has a file of MTOPDomain, but only its German and Thai subsets."""
    cells = public.table("official_cells")
    mine = cells[cells["model_name"] == "sentence-transformers/all-mpnet-base-v2"]
    assert set(mine.loc[mine["task_name"] == "MTOPDomainClassification", "hf_subset"]) == {
        "de",
        "th",
    }
    scores = public.scores(descriptions)
    scores = scores[scores["model"] == "sentence-transformers/all-mpnet-base-v2"]
    assert len(scores) == 39
    assert "MTOPDomainClassification" not in set(scores["task"])


def test_former_metrics_complete_more_cells_and_say_so(
    public: Official, descriptions: list[TaskDescription]
) -> None:
    scores = public.scores(descriptions)
    repaired = scores[scores["repaired"].str.contains("taken from its former name")]
    assert set(repaired["task"]) == {"AskUbuntuDupQuestions", "MindSmallReranking"}
    assert repaired["main_score"].between(0.2, 0.7).all()


def test_public_scores_feed_the_joint_layer(
    public: Official, descriptions: list[TaskDescription]
) -> None:
    families = {"intfloat/e5-base-v2": "e5", "intfloat/e5-large-v2": "e5"}
    scores = public.scores(descriptions)
    rows = joint_scores(scores, public.results.facts.model_parents, families)
    assert list(rows.columns) == ["model", "family", "task", "main_score"]
    assert not rows.duplicated(["model", "task"]).any()
    assert rows["main_score"].between(-1, 1).all()
    by_model = rows.drop_duplicates("model").set_index("model")["family"]
    assert by_model["intfloat/e5-large-v2"] == "e5"
    assert "mteb/baseline-random-encoder" not in by_model.index
    table = rows.pivot(index="model", columns="task", values="main_score")
    assert table.shape == (len(by_model), 41)
    assert table.notna().all(axis=1).sum() > 150
    assert len(rows) < len(usable(scores))  # outliers are left out
