"""What a loader of public results must survive: taken, repaired or refused, each on purpose.

One test per thing that the notes on the public results repository name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.official_world import MODEL, REVISION, Official, new_result, put, subsets


@pytest.fixture
def world(tmp_path: Path, registry: Path) -> Official:
    (tmp_path / "mirror" / "results").mkdir(parents=True)
    return Official(tmp_path / "mirror", tmp_path / "home", registry)


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return tmp_path / "mirror"


def one(world: Official, decision: str) -> str:
    """The only reason with this decision."""
    (reason,) = [r for d, r in world.quarantine() if d == decision]
    return reason


def test_links_that_lead_back_are_named(world: Official, mirror: Path) -> None:
    put(mirror, new_result())
    model = next((mirror / "results").iterdir())
    other = mirror / "elsewhere"
    other.mkdir()
    (mirror / "results" / "shared").symlink_to(other)  # a link as such is no matter
    put(other, new_result("T2"), model="org/other")
    for link, target in ((model / "again", mirror / "results"), (other / "back", model / "down")):
        if target.name == "down":
            target.symlink_to(other)
        link.symlink_to(target)
        with pytest.raises(ValueError, match=r"is a link to .*, a folder that holds it.*remove"):
            world.results.state()
        with pytest.raises(ValueError, match="remove the link"):
            world.ingest()
        link.unlink()
        if target.name == "down":
            target.unlink()
    assert world.results.state().startswith("folder ")


def test_bare_nan_in_other_metrics_is_taken(world: Official, mirror: Path) -> None:
    path = put(mirror, new_result(scores=subsets(default=0.5)))
    path.write_text(path.read_text().replace('"languages": []', '"nauc": NaN, "languages": []'))
    world.ingest()
    assert world.cells() == {(MODEL, "T", "test", "default"): 0.5}
    assert world.quarantine() == []


def test_a_main_score_that_is_nan_is_refused(world: Official, mirror: Path) -> None:
    put(mirror, new_result(scores=subsets(en=0.5, ar=float("nan"))))
    world.ingest()
    assert one(world, "refused") == "main_score is nan: not a number"
    assert world.cells()[MODEL, "T", "test", "en"] == 0.5


def test_the_old_format_is_read_like_mteb_does(world: Official, mirror: Path) -> None:
    body = {
        "mteb_dataset_name": "STS17", "mteb_version": "1.1.1", "dataset_revision": "d",
        "test": {
            "en-en": {"cos_sim": {"spearman": 0.8, "pearson": 0.1}, "dot": {"spearman": 0.2}},
            "ar-ar": {"cos_sim": {"spearman": 0.6}}, "evaluation_time": 3,
        },
    }  # fmt: skip
    put(mirror, body)
    put(mirror, {"mteb_dataset_name": "Banking77Classification", "test": {"accuracy": 0.7}})
    world.ingest()
    assert world.cells() == {
        (MODEL, "STS17", "test", "en-en"): 0.8,
        (MODEL, "STS17", "test", "ar-ar"): 0.6,
        (MODEL, "Banking77Classification", "test", "default"): 0.7,
    }
    assert set(world.table("ingested_files")["result_format"]) == {"old", "model_meta"}


@pytest.mark.parametrize(
    ("task", "metrics", "score", "former"),
    [
        ("AskUbuntuDupQuestions", {"map": 0.61, "mrr": 0.7}, 0.61, "map"),
        ("MindSmallReranking", {"map": 0.31}, 0.31, "map"),
        ("TwitterURLCorpus", {"cos_sim": {"ap": 0.85}, "dot": {"ap": 0.86}}, 0.86, "dot_ap"),
    ],
)
def test_scores_under_a_former_metric_are_repaired(
    world: Official, mirror: Path, task: str, metrics: dict[str, Any], score: float, former: str
) -> None:
    put(mirror, {"mteb_dataset_name": task, "mteb_version": "1.1.1", "test": metrics})
    world.ingest()
    assert world.cells() == {(MODEL, task, "test", "default"): score}
    assert one(world, "taken").endswith(f"taken from `{former}`")


def test_a_file_without_any_score_for_the_metric_is_refused(world: Official, mirror: Path) -> None:
    put(mirror, {"mteb_dataset_name": "AskUbuntuDupQuestions", "test": {"mrr": 0.7}})
    world.ingest()
    assert one(world, "refused") == "no main score (map_at_1000)"


def test_external_results_without_version_or_time_are_taken(world: Official, mirror: Path) -> None:
    body = new_result()
    del body["mteb_version"], body["evaluation_time"]
    put(mirror, body, revision="external")
    world.ingest()
    files = world.table("ingested_files").set_index("task_name")
    assert files.loc["T", ["revision", "mteb_version"]].tolist() == ["external", ""]
    assert world.cells() == {(MODEL, "T", "test", "default"): 0.5}


def test_of_several_revisions_the_leaderboards_counts(world: Official, mirror: Path) -> None:
    for revision, version, score in (
        ("no_revision_available", "2.9.0", 0.1),
        ("external", None, 0.2),
        ("1", "1.9.0", 0.3),
        (REVISION, "1.10.0", 0.4),
    ):
        body = new_result(mteb_version=version, scores=subsets(default=score))
        put(mirror, body, revision=revision)
    world.ingest()
    assert world.cells() == {(MODEL, "T", "test", "default"): 0.4}
    reasons = [r for d, r in world.quarantine() if d == "refused"]
    kept = f"org__m/{REVISION}/T.json"
    assert reasons == [f"not the file that the leaderboard keeps: {kept} counts"] * 3


def test_a_range_of_versions_ranks_as_none_and_is_noted(world: Official, mirror: Path) -> None:
    put(mirror, new_result(mteb_version="2.10.0-2.18.7"), revision="3")
    put(mirror, new_result(mteb_version="1.0.0", scores=subsets(default=0.7)), revision="1")
    world.ingest()
    assert world.cells() == {(MODEL, "T", "test", "default"): 0.7}
    assert "mteb_version 2.10.0-2.18.7 is a range" in one(world, "taken")


def test_other_splits_and_subsets_are_kept_by_name(world: Official, mirror: Path) -> None:
    scores = {split: subsets(en=0.1 * n)["test"] for n, split in
              enumerate(("test_256", "devtest", "default", "train"), start=1)}  # fmt: skip
    put(mirror, new_result(scores=scores))
    world.ingest()
    assert {(s, round(x, 1)) for (_, _, s, _), x in world.cells().items()} == {
        ("test_256", 0.1), ("devtest", 0.2), ("default", 0.3), ("train", 0.4),
    }  # fmt: skip


@pytest.mark.parametrize("score", [55.1, -3.0])
def test_scores_that_are_no_fractions_are_refused(
    world: Official, mirror: Path, score: float
) -> None:
    put(mirror, new_result(scores=subsets(default=score)))
    world.ingest()
    assert one(world, "refused") == f"main score is {score}: not a fraction"


def test_an_integer_beyond_all_floats_is_refused(world: Official, mirror: Path) -> None:
    put(mirror, new_result(scores=subsets(default=10**400)))
    world.ingest()
    assert "not a number" in one(world, "refused")


def test_negative_scores_are_taken_as_they_are(world: Official, mirror: Path) -> None:
    put(mirror, new_result(scores=subsets(default=-0.031)))
    world.ingest()
    assert world.cells() == {(MODEL, "T", "test", "default"): -0.031}
    assert world.quarantine() == []


def test_a_subset_twice_in_a_file_counts_once(world: Official, mirror: Path) -> None:
    entries = subsets(en=0.5)["test"] + subsets(en=0.7)["test"]
    put(mirror, new_result(scores={"test": entries}))
    world.ingest()
    assert world.cells() == {(MODEL, "T", "test", "en"): 0.5}
    assert one(world, "refused") == "the file has this subset before: the first one counts"


def test_without_model_meta_the_folder_names_the_model(world: Official, mirror: Path) -> None:
    put(mirror, new_result(), meta=False)
    world.ingest()
    assert world.cells() == {(MODEL, "T", "test", "default"): 0.5}
    assert "no model_meta.json" in one(world, "taken")


def test_experiments_are_read_and_never_count(world: Official, mirror: Path) -> None:
    put(mirror, new_result(), experiment="model_kwargs_{}")
    world.ingest()
    assert world.cells() == {}
    assert world.table("official_cells")["experiment"].tolist() == ["model_kwargs_{}"]
    assert "an experiment (model_kwargs_{})" in one(world, "refused")


def test_names_with_a_suffix_are_models_of_their_own(world: Official, mirror: Path) -> None:
    named = "openai/text-embedding-3-small (embed_dim=512)"
    put(mirror, new_result(), model=named)
    put(mirror, new_result(scores=subsets(default=0.9)), model="openai/text-embedding-3-small")
    world.ingest()
    assert (mirror / "results" / "openai__text-embedding-3-small_(embed_dim=512)").is_dir()
    assert world.cells() == {
        (named, "T", "test", "default"): 0.5,
        ("openai/text-embedding-3-small", "T", "test", "default"): 0.9,
    }


def test_models_that_the_registry_renamed_are_found_by_both_names(
    world: Official, mirror: Path
) -> None:
    put(mirror, new_result(), model="voyageai/voyage-3")
    world.ingest()
    assert world.cells() == {("mongodb/voyage-3", "T", "test", "default"): 0.5}
    assert one(world, "taken") == "voyageai/voyage-3 is mongodb/voyage-3 in mteb's registry now"
    assert world.results.facts.model_name("voyageai/voyage-3") == "mongodb/voyage-3"


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("DiaBLaBitextMining", "DiaBlaBitextMining"),
        ("CMedQAv1", "CMedQAv1-reranking"),
        ("PPC", "PpcPC"),
        ("8TagsClustering", "EightTagsClustering"),
        ("NorwegianParliament", "NorwegianParliamentClassification"),
    ],
)
def test_renamed_tasks_get_their_present_name(
    world: Official, mirror: Path, former: str, present: str
) -> None:
    put(mirror, new_result(former))
    world.ingest()
    assert world.cells() == {(MODEL, present, "test", "default"): 0.5}
    assert one(world, "taken") == f"task {former} is {present} now"


def test_v2_names_are_other_tasks(world: Official, mirror: Path) -> None:
    put(mirror, new_result("STS22"))
    put(mirror, new_result("STS22.v2", scores=subsets(default=0.7)))
    world.ingest()
    assert {task: score for (_, task, _, _), score in world.cells().items()} == {
        "STS22": 0.5, "STS22.v2": 0.7,
    }  # fmt: skip
    assert world.quarantine() == []


def test_the_same_task_in_two_files_of_other_case_is_a_conflict(
    world: Official, mirror: Path
) -> None:
    put(mirror, new_result("DiaBlaBitextMining", scores=subsets(default=0.857)))
    old = new_result("DiaBLaBitextMining", mteb_version="1.1.2.dev0", scores=subsets(default=0.007))
    put(mirror, old, revision="no_revision_available")
    world.ingest()
    assert list(world.cells().values()) == [0.857]
    assert "DiaBlaBitextMining.json counts" in one(world, "refused")


def test_strays_and_broken_files_are_refused_and_stop_nothing(
    world: Official, mirror: Path
) -> None:
    put(mirror, new_result())
    folder = put(mirror, '{"task_name": "T", "sco', name="cut.json").parent
    (folder / "run_settings.jsonl").write_text("{}")
    (folder.parent / "convert.py").write_text("")
    (folder / "list.json").write_text("[1]")
    (folder / "other.json").write_text('{"a": 1}')
    (folder / "binary.json").write_bytes(b"\xff\xfe\x00")
    (folder / "nowhere.json").symlink_to(folder / "gone.json")
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "half.json").write_text(json.dumps(new_result(scores=subsets(**{"\ud800": 0.5}))))
    found = world.ingest()
    assert world.cells() == {(MODEL, "T", "test", "default"): 0.5}
    files = world.table("ingested_files").set_index("path")["refused"]
    refused = {path.rpartition("/")[2]: reason for path, reason in files.items() if reason}
    assert set(refused) == {"cut.json", "run_settings.jsonl", "convert.py", "list.json",
                            "other.json", "binary.json", "nowhere.json", "deep.json",
                            "half.json"}  # fmt: skip
    assert refused["cut.json"].startswith("no JSON: ")
    assert refused["convert.py"] == "no result file: stray in the folder"
    assert refused["list.json"] == "a list, no result file of mteb"
    assert found["n_refused_files"] == 9
    assert world.ingest()["n_read"] == 0


def test_the_pick_is_what_mteb_makes_of_the_same_folder(world: Official, mirror: Path) -> None:
    import mteb

    versions = ["1.38.9", "2.10.0", "1.4.0", "2.9.1"]
    models = ("intfloat/e5-base-v2", "sentence-transformers/LaBSE", MODEL)
    facts = world.results.facts
    for m, model in enumerate(models):
        pinned = str(facts.model_revisions.get(model) or REVISION)
        for t, task in enumerate(("STSBenchmark", "STS17", "SciFact", "TRECCOVID")):
            for r, revision in enumerate(("external", "no_revision_available", "2", pinned)):
                if (m + t + r) % 4 == 3:
                    continue
                version = None if revision == "external" else versions[(m + 2 * t + r) % 4]
                score = (1 + 16 * m + 4 * t + r) / 100
                body = new_result(task, mteb_version=version, scores=subsets(default=score))
                put(mirror, body, model=model, revision=revision)
    world.ingest()
    loaded = mteb.ResultCache(mirror).load_results(include_remote=False).join_revisions()
    wanted = {
        (m.model_name, t.task_name, m.model_revision): t.scores["test"][0]["main_score"]
        for m in loaded
        for t in m.task_results
    }
    rows = world.table("official_cells")
    rows = rows[rows["picked"]]
    keys = zip(rows["model_name"], rows["task_name"], rows["revision"], strict=True)
    assert dict(zip(keys, rows["main_score"], strict=True)) == wanted


def test_json_of_main_scores_alone_is_the_whole_json(world: Official, mirror: Path) -> None:
    """The fast decoding drops fields; what it keeps must be what the whole file says."""
    body = new_result(scores=subsets(**{'a\\u0301 "b"': 1e-3, "ar-ar": 1, "x": -0.0}))
    put(mirror, json.loads(json.dumps(body)))
    world.ingest()
    assert {h: s for (_, _, _, h), s in world.cells().items()} == {
        "a\\u0301 \"b\"": 1e-3, "ar-ar": 1.0, "x": 0.0,
    }  # fmt: skip
