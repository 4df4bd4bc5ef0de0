"""The packaged suites: what they hold, that mteb says the same, and that they load at once."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from mteblite.suites.catalog import Catalog, Suite
from mteblite.suites.resolution import differences, resolution_to_json
from mteblite_assets.graph.partitions import Partitions
from mteblite_resources import catalog_files, frozen_tasks
from mteblite_resources.catalog_files import load_catalog
from mteblite_resources.frozen_tasks import packaged_resolution
from mteblite_resources.home import Home

ROOT = Path(__file__).parents[3]
FROZEN = (
    "ara-super", "beir", "eng", "eng-super", "longembed", "mmteb", "mteb-eng-v1", "retrieval-qa",
    "rteb",
)  # fmt: skip


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The packaged suites in an empty home."""
    return load_catalog(Home(tmp_path_factory.mktemp("empty") / "home"))


def _types(suite: Suite) -> Counter[str]:
    return Counter(e.description.task_type for e in suite.tasks if e.description)


def test_all_are_there_and_known_without_asking_mteb(catalog: Catalog) -> None:
    assert catalog.problems == {}
    assert set(catalog.suites) == {*FROZEN, "sample"}
    for name in FROZEN:
        assert catalog.suite(name).resolved, name


@pytest.mark.parametrize(
    ("name", "models", "families", "k", "variant"),
    [
        ("eng", 28, 15, 100, ("anchor", "mean", "anchorset")),
        ("eng-super", 46, 33, 20, ("fisher", "mean", "anchorset")),
        ("ara-super", 39, 21, 20, ("anchor", "gp", "strat")),
    ],
)
def test_published_selections(
    catalog: Catalog, name: str, models: int, families: int, k: int, variant: tuple[str, str, str]
) -> None:
    suite = catalog.suite(name)
    assert len(suite.models) == models
    assert len({m.family for m in suite.models}) == families
    assert max(Counter(m.family for m in suite.models).values()) == 3
    file = suite.file
    assert file.k == k
    assert (file.per_item.selection, file.per_item.estimator, file.set_metric.selection) == variant
    assert file.max_tokens == (512 if name == "ara-super" else None)
    pool = file.pool.model_dump()
    assert pool == {"max_items": 1000, "bm25_top": 30, "max_relevant": 100,
                    "random_documents": 1000, "seed": 0}  # fmt: skip


def test_private_checkpoints_are_named_and_wait_for_weights(catalog: Catalog) -> None:
    eng = catalog.suite("eng")
    absent = {m.name for m in eng.absent()}
    assert {"A-lin0.6", "AV2-lin1.0", "W-A0.7-S3-0.3-l0.5", "V5-ties-d0.1-l0.5"} <= absent
    assert len(absent) == 19
    assert not absent & {m.name for m in eng.references()}
    assert "Qwen/Qwen3-Embedding-0.6B+norm" in {m.name for m in eng.references()}


def test_types_of_the_benchmarks(catalog: Catalog) -> None:
    english = {"Retrieval": 10, "STS": 9, "Classification": 8, "Clustering": 8,
               "PairClassification": 3, "Reranking": 2, "Summarization": 1}  # fmt: skip
    assert _types(catalog.suite("eng")) == english
    arabic = {"Classification": 14, "Retrieval": 12, "BitextMining": 6, "STS": 4,
              "PairClassification": 2, "Clustering": 2, "Reranking": 2}  # fmt: skip
    assert _types(catalog.suite("ara-super")) == arabic
    for name, whole in (("mteb-eng-v1", 56), ("beir", 15)):
        tasks = catalog.suite(name).tasks
        assert len({e.part_of or e.task for e in tasks}) == whole
        assert [e.part_of for e in tasks].count("CQADupstackRetrieval") == 12
        assert catalog.suite(name).file.headline == "mean"
    assert catalog.suite("eng").file.headline == "macro_mean"


def test_passkey_and_needle_are_scored_by_their_first_hit(catalog: Catalog) -> None:
    metrics = {
        e.task: e.description.main_metric for e in catalog.suite("longembed").tasks if e.description
    }
    first = {"LEMBNeedleRetrieval", "LEMBPasskeyRetrieval"}
    assert {t for t, m in metrics.items() if m == "ndcg_at_1"} == first
    assert {m for t, m in metrics.items() if t not in first} == {"ndcg_at_10"}


def test_what_cannot_take_part_is_left_out_with_the_reason(catalog: Catalog) -> None:
    rteb = catalog.suite("rteb").left_out
    assert len(rteb) == 13
    assert all("private" in x.reason for x in rteb)
    mmteb = catalog.suite("mmteb").left_out
    assert Counter(x.task_type for x in mmteb) == {
        "MultilabelClassification": 5, "InstructionReranking": 3
    }  # fmt: skip
    assert all(x.task_type in x.reason for x in mmteb)
    assert len(catalog.suite("mmteb").tasks) == 123


def test_eng_and_eng_super_share_their_pools(catalog: Catalog) -> None:
    pools = [{e.pool_task for e in catalog.suite(name).tasks} for name in ("eng", "eng-super")]
    assert pools[0] == pools[1]


def test_arabic_tasks_and_subsets_are_those_of_the_table(catalog: Catalog, shared: Path) -> None:
    with (shared / "scores" / "arabic_tasks.csv").open() as stream:
        wanted = {
            row["task"]: (row["use_split"], set(row["all_subsets"].split("|")))
            for row in csv.DictReader(stream)
            if row["P1"] == "True"
        }
    found = {
        e.task: (",".join(e.description.splits), set(e.description.hf_subsets))
        for e in catalog.suite("ara-super").tasks
        if e.description
    }
    assert found == wanted
    assert catalog.suite("ara-super").task("MIRACLReranking").request.max_items == 300


def test_own_data_is_left_out_until_it_is_there(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    suite = load_catalog(home).suite("retrieval-qa")
    assert [x.task for x in suite.left_out] == ["OwnQA"]
    assert "data/qa" in suite.left_out[0].reason
    (tmp_path / "data" / "qa").mkdir(parents=True)
    suite = load_catalog(home).suite("retrieval-qa")
    assert suite.left_out == ()
    assert suite.task("OwnQA").request.path == str(tmp_path / "data" / "qa")
    assert not suite.resolved
    assert set(suite.task("SciFact").description.metrics) == {  # type: ignore[union-attr]
        "ndcg_at_10", "map_at_10", "mrr_at_10"
    }  # fmt: skip


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 2}', '{"format": 2, "tasks": [1]}'])
def test_a_damaged_frozen_file_is_a_problem_of_its_suite_alone(
    tmp_path: Path, content: str
) -> None:
    home = Home(tmp_path / "home")
    home.resolved.mkdir(parents=True)
    (home.resolved / "eng.json").write_text(content)
    found = load_catalog(home)
    assert list(found.problems) == ["eng.yaml"]
    assert "eng.json, the frozen tasks of a suite, is damaged" in found.problems["eng.yaml"]
    assert "delete it" in found.problems["eng.yaml"]
    assert found.suite("eng-super").resolved


def test_a_damaged_record_of_a_model_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    (home.models / "eng").mkdir(parents=True)
    (home.models / "eng" / "zz.json").write_text("{")
    found = load_catalog(home)
    assert list(found.problems) == ["eng.yaml"]
    assert "zz.json, written by `mteblite models`, is damaged" in found.problems["eng.yaml"]
    assert "delete it" in found.problems["eng.yaml"]


def test_all_suites_load_within_a_second(tmp_path: Path) -> None:
    def load() -> float:
        catalog_files._parse.cache_clear()
        frozen_tasks._parse.cache_clear()
        started = time.process_time()
        Partitions.of(load_catalog(Home(tmp_path / "home")))
        return time.process_time() - started

    assert min(load() for _ in range(3)) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.long) if n in ("mmteb", "ara-super") else n for n in FROZEN],
)
def test_installed_mteb_says_what_was_frozen(catalog: Catalog, name: str) -> None:
    """A difference means: run `python -m mteblite_resources.freezing` and read the diff."""
    from mteblite_resources.freezing import freeze

    file = catalog.suite(name).file
    frozen = packaged_resolution(file)
    assert frozen is not None
    found = freeze(file)
    assert differences(frozen, found) == []
    assert list(frozen.tasks) == list(found.tasks)
    # Nothing else of the file is stale, either: extra metrics, parts, reasons, the version.
    assert resolution_to_json(frozen) == resolution_to_json(found)


BENCHMARKS = {
    "beir": "BEIR", "eng": "MTEB(eng, v2)", "eng-super": "MTEB(eng, v2)", "longembed": "LongEmbed",
    "mmteb": "MTEB(Multilingual, v2)", "mteb-eng-v1": "MTEB(eng, v1)", "retrieval-qa": "BEIR",
    "rteb": "RTEB(beta)",
}  # fmt: skip


def test_every_frozen_suite_is_compared_with_something() -> None:
    """`ara-super` lists its tasks: `test_arabic_tasks_and_subsets_are_those_of_the_table`."""
    assert {*BENCHMARKS, "ara-super"} == set(FROZEN)
    shipped = {p.name.removesuffix(frozen_tasks.SUFFIX)
               for p in frozen_tasks.packaged_suites().glob(f"*{frozen_tasks.SUFFIX}")}  # fmt: skip
    assert shipped == set(FROZEN)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_frozen_cells_are_those_of_the_benchmark(catalog: Catalog, shared: Path, name: str) -> None:
    """A table that was made by reading mteb's benchmark objects, not by this project's code."""
    import pandas as pd

    rows = pd.read_parquet(shared / "scores" / "benchmark_tasks.parquet")
    rows = rows[rows["benchmark"] == BENCHMARKS[name]]
    aggregates = set(rows.loc[rows["is_aggregate"], "task_name"])
    rows = rows[~rows["is_aggregate"]]
    frozen = packaged_resolution(catalog.suite(name).file)
    assert frozen is not None
    rows = rows[~rows["task_name"].isin([x.task for x in frozen.left_out])]
    wanted = set(rows[["task_name", "split", "hf_subset"]].itertuples(index=False, name=None))
    found = {
        (t.description.task, split, subset)
        for t in frozen.tasks.values()
        if not t.part_of
        for split in t.description.splits
        for subset in t.description.hf_subsets
    }
    assert found == wanted
    types = dict(zip(rows["task_name"], rows["type"], strict=True))
    whole = {t: x.description.task_type for t, x in frozen.tasks.items() if not x.part_of}
    assert whole == types
    assert {t.part_of for t in frozen.tasks.values()} - {""} == aggregates


@pytest.mark.slow
def test_listed_models_are_in_the_registry_at_their_revision(catalog: Catalog) -> None:
    from mteb.models.model_implementations import MODEL_REGISTRY

    for name in FROZEN:
        for model in catalog.suite(name).references():
            assert MODEL_REGISTRY[model.base].revision == model.revision, model.name


PLAN = """
import sys
from mteblite_assets.cli.main import main
sys.argv = ["mteblite", "plan", "--suite", "eng-super", "--json"]
try:
    main()
finally:
    heavy = [m for m in ("mteb", "torch", "sklearn") if m in sys.modules]
    print("heavy:", heavy, file=sys.stderr)
"""


def test_plan_of_eng_super_needs_neither_data_nor_mteb(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-c", PLAN], cwd=ROOT, capture_output=True, text=True, timeout=120,
        check=False,
        env={**os.environ, "MTEBLITE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "heavy: []" in done.stderr
    plan = json.loads(done.stdout)
    stages = plan["stages"]
    assert len(plan["assets"]["pool_items"]["run"]) == 41
    assert len(stages["embeddings"]["run"]) == 41 * 27
    assert stages["item_parameters"]["run"]
    workload = plan["workload"]
    assert workload["unknown"] == []
    assert len(workload["tasks"]) == 41
    assert 200_000 < workload["texts"] < 400_000
    # Qwen3-0.6B and its +norm share their vectors.
    assert workload["texts_to_encode"] == 26 * workload["texts"]
    assert workload["tokens"] > 10 * workload["texts"]
    assert any("19 listed models are skipped" in note for note in plan["notes"])
