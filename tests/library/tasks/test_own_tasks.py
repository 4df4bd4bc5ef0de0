"""A user's own files become mteb tasks: same data, same path through mteb, clear errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.drawing import draw_pool
from mteblite.tasks.mteb_tasks import MtebTasks
from mteblite_assets.graph.work import Work
from mteblite_assets.pools.assets import pool_items
from mteblite_resources.declared_tables import DeclaredTables
from mteblite_resources.home import Home
from mteblite_resources.workbench import Workbench

TASKS = MtebTasks()


def write_jsonl(file: Path, rows: list[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """Three documents, three queries, one of them without a judgement; ids with leading zeros."""
    write_jsonl(
        tmp_path / "corpus.jsonl",
        [
            {"_id": "007", "title": "Rivers", "text": "The Nile flows north."},
            {"_id": "008", "title": "", "text": " قهوة عربية "},
            {"_id": "9", "title": "Sand", "text": "Dunes move."},
        ],
    )
    write_jsonl(
        tmp_path / "queries.jsonl",
        [
            {"_id": "1", "text": "which way does the Nile flow"},
            {"_id": "2", "text": "nobody judged this"},
            {"_id": "3", "text": "قهوة"},
        ],
    )
    (tmp_path / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n1\t007\t2\n1\t9\t0\n3\t008\t1\n"
    )
    return tmp_path


def described(path: Path, kind: str, **kwargs: Any) -> Any:
    return TASKS.describe("OurSupportQA", path=path, task_type=kind, **kwargs)


def only_cell(data: Any) -> dict[str, Any]:
    (cell,) = data.cells.values()
    return dict(cell)


def test_beir_files_become_the_frames_of_a_retrieval_task(beir: Path) -> None:
    description = described(beir, "Retrieval", metrics=["ndcg_at_10", "auprc"])
    assert description.main_metric == "ndcg_at_10"
    assert description.metrics == ("ndcg_at_10", "auprc")
    data = TASKS.load(description)
    assert list(data.cells) == [("test", "default")]
    cell = only_cell(data)
    assert cell["corpus"].ids == ["007", "008", "9"]
    # mteb joins title and text and strips.
    assert cell["corpus"].texts([0, 1]) == ["Rivers The Nile flows north.", "قهوة عربية"]
    assert cell["queries"]["query_id"].tolist() == ["1", "3"]
    assert cell["qrels"].values.tolist() == [["1", "007", 2], ["1", "9", 0], ["3", "008", 1]]
    assert cell["top_ranked"] is None


def test_qrels_per_split_as_in_beir(beir: Path) -> None:
    (beir / "qrels").mkdir()
    (beir / "qrels/dev.tsv").write_text("query-id\tcorpus-id\tscore\n2\t9\t1\n")
    data = TASKS.load(described(beir, "Retrieval", splits=["dev"]))
    assert only_cell(data)["queries"]["query_id"].tolist() == ["2"]


def test_parquet_holds_the_same_task(beir: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("parquet")
    for name in ("corpus", "queries"):
        frame = pd.read_json(beir / f"{name}.jsonl", lines=True, dtype=False)
        frame.to_parquet(folder / f"{name}.parquet")
    pd.read_csv(beir / "qrels.tsv", sep="\t", dtype=str).to_parquet(folder / "qrels.parquet")
    from_text = only_cell(TASKS.load(described(beir, "Retrieval")))
    from_parquet = only_cell(TASKS.load(described(folder, "Retrieval")))
    pd.testing.assert_frame_equal(from_text["qrels"], from_parquet["qrels"])
    assert from_text["corpus"].texts([0, 1, 2]) == from_parquet["corpus"].texts([0, 1, 2])


def test_reranking_candidates_come_from_top_ranked_else_from_the_judgements(beir: Path) -> None:
    judged = only_cell(TASKS.load(described(beir, "Reranking")))["top_ranked"]
    assert judged.values.tolist() == [["1", "007"], ["1", "9"], ["3", "008"]]
    write_jsonl(
        beir / "top_ranked.jsonl",
        [
            {"query-id": "1", "corpus-ids": ["9", "007"]},
            {"query-id": "3", "corpus-ids": ["008", "9"]},
        ],
    )
    ranked = only_cell(TASKS.load(described(beir, "Reranking")))["top_ranked"]
    assert ranked.values.tolist() == [["1", "9"], ["1", "007"], ["3", "008"], ["3", "9"]]


def listed(folder: Path, first: list[str], third: list[str]) -> None:
    rows = [{"query-id": "1", "corpus-ids": first}, {"query-id": "3", "corpus-ids": third}]
    write_jsonl(folder / "top_ranked.jsonl", rows)


def test_candidates_that_the_corpus_lacks_are_left_out_and_counted(beir: Path) -> None:
    import mteb

    listed(beir, ["9", "gone", "007"], ["lost", "gone", "008"])
    description = described(beir, "Reranking")
    pool = draw_pool(TASKS.load(description), PoolSettings())
    assert pool.meta["n_missing_candidates"] == 3
    assert pool.frames["candidates"]["doc_id"].tolist() == ["9", "007", "008"]
    # mteb alone would look "gone" up among the documents and break off
    model = mteb.get_model("mteb/baseline-random-encoder")
    task = TASKS.task(description)
    (result,) = mteb.evaluate(model, task, cache=None, show_progress_bar=False).task_results
    assert result.get_score() > 0


def test_lost_candidates_show_on_the_pool_in_the_graph(beir: Path) -> None:
    listed(beir, ["9", "gone", "007"], ["008"])
    home = Home(beir / "home").prepare()  # what it keeps there must not count as changed data
    home.suites.mkdir(exist_ok=True)
    task = {"task": "OurSupportQA", "type": "Reranking", "path": str(beir)}
    document = {"name": "own", "tasks": [task], "models": [{"name": "m", "family": "f"}]}
    (home.suites / "own.yaml").write_text(json.dumps(document))  # JSON is YAML
    bench = Workbench(home)
    catalog = bench.catalog()
    (entry,) = catalog.suite("own").tasks
    tables = DeclaredTables("pool_items", (), (), bench.warehouse)
    key = {"pool_task": entry.pool_task}
    work = Work(key, catalog, bench.ports, {}, tables, lambda _: None)
    facts = pool_items.compute(work).metadata
    assert facts["n_missing_candidates"] == 1
    assert "n_missing_relevant" not in facts, "what is not there is not shown"


def test_candidates_of_another_corpus_are_refused(beir: Path) -> None:
    listed(beir, ["a", "b"], ["c"])
    message = (
        r"OurSupportQA: .*top_ranked.jsonl, line 1: id 'a' is not in the corpus, nor is any other"
    )
    with pytest.raises(ValueError, match=message):
        TASKS.load(described(beir, "Reranking"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{"query-id": "1", "corpus-ids": "9 007"}],
            "line 1: column 'corpus-ids' is '9 007'; .* list",
        ),
        ([{"query-id": "1", "corpus-ids": ["9"]}] * 2, "line 2: query '1' has a list already"),
        ([{"query-id": "1", "corpus-ids": ["9"]}], "no candidates for query '3'"),
    ],
)
def test_malformed_candidate_lists_are_named(
    beir: Path, rows: list[dict[str, Any]], message: str
) -> None:
    write_jsonl(beir / "top_ranked.jsonl", rows)
    with pytest.raises(ValueError, match=rf"OurSupportQA: .*top_ranked.jsonl.*{message}"):
        TASKS.load(described(beir, "Reranking"))


PAIRS = [
    {"sentence1": "a cat", "sentence2": "قطة", "score": 4.5, "label": 1},
    {"sentence1": "a dog", "sentence2": "كرسي", "score": 0, "label": 0},
]


@pytest.mark.parametrize(
    ("kind", "columns", "metric"),
    [
        ("STS", ["text1", "text2", "gold"], "cosine_spearman"),
        ("PairClassification", ["text1", "text2", "label"], "max_ap"),
        ("BitextMining", ["sentence1", "sentence2"], "f1"),
    ],
)
def test_pairs(tmp_path: Path, kind: str, columns: list[str], metric: str) -> None:
    write_jsonl(tmp_path / "pairs.jsonl", PAIRS)
    description = described(tmp_path, kind)
    assert description.main_metric == metric
    pairs = only_cell(TASKS.load(description))["pairs"]
    assert list(pairs.columns) == columns
    assert pairs.iloc[0].tolist()[:2] == ["a cat", "قطة"]
    if kind == "STS":
        assert pairs["gold"].tolist() == [4.5, 0.0]


def test_classification_from_tab_separated_files(tmp_path: Path) -> None:
    lines = [f"text {i}\t{'yes' if i % 2 else 'no'}" for i in range(40)]
    (tmp_path / "train.tsv").write_text("text\tlabel\n" + "\n".join(lines))
    (tmp_path / "test.tsv").write_text("text\tlabel\nNA\tyes\nnull\tno\n")
    data = TASKS.load(described(tmp_path, "Classification"))
    cell = only_cell(data)
    assert cell["test"]["text"].tolist() == ["NA", "null"]
    assert len(cell["experiments"]) == data.protocol["n_experiments"] == 10
    for rows in cell["experiments"]:
        assert sorted(cell["train"]["label"][rows]) == ["no"] * 8 + ["yes"] * 8


def test_mteb_evaluates_the_task_object(beir: Path) -> None:
    import mteb

    task = TASKS.task(described(beir, "Retrieval"))
    model = mteb.get_model("mteb/baseline-random-encoder")
    (result,) = mteb.evaluate(model, task, cache=None, show_progress_bar=False).task_results
    assert result.task_name == "OurSupportQA"
    assert 0 <= result.scores["test"][0]["main_score"] <= 1


def test_changed_files_are_other_data(beir: Path) -> None:
    before = described(beir, "Retrieval")
    assert described(beir, "Retrieval") == before
    (beir / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\t008\t1\n")
    after = described(beir, "Retrieval")
    assert after.dataset_revision != before.dataset_revision
    with pytest.raises(ValueError, match=r"OurSupportQA.*do not compare"):
        TASKS.load(before)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "qrels.tsv",
            "query-id\tcorpus-id\tscore\n1\t77\t1\n",
            "line 2: id '77' is not in the corpus, nor is any other",
        ),
        (
            "qrels.tsv",
            "query-id\tcorpus-id\tscore\n5\t9\t1\n",
            "line 2: id '5' is not in the queries, nor is any other",
        ),
        (
            "qrels.tsv",
            "query-id\tcorpus-id\tscore\n1\t9\thigh\n",
            "line 2: column 'score' is 'high'; expected a finite",
        ),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n1\t9\t0.5\n", "line 2: score 0.5 is no whole"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n1\t9\tnan\n", "line 2: column 'score' is 'nan'"),
        ("qrels.tsv", "query\tdoc\n1\t9\n", "no column 'query-id'.*it has: query, doc"),
        (
            "corpus.jsonl",
            '{"_id": "9", "text": "a"}\n{"_id": "9", "text": "b"}\n',
            "lines 1 and 2: id '9' is there more than once",
        ),
        ("corpus.jsonl", '{"_id": "9", "text": null}\n', "line 1: column 'text' is None"),
        ("corpus.jsonl", '{"_id": "9", "te', "line 1: .* is no JSON"),
        ("queries.jsonl", "", "is empty"),
        ("queries.jsonl", "\n", "holds no row"),
    ],
)
def test_malformed_files_are_named(beir: Path, file: str, content: str, message: str) -> None:
    (beir / file).write_text(content)
    with pytest.raises(ValueError, match=rf"OurSupportQA: .*{file}.*{message}"):
        TASKS.load(described(beir, "Retrieval"))


def test_a_pair_label_other_than_0_or_1_is_refused(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "test.jsonl", [{**PAIRS[0], "label": 2}])
    with pytest.raises(ValueError, match="label 2; expected 0 or 1"):
        TASKS.load(described(tmp_path, "PairClassification"))


def test_what_cannot_be_described(beir: Path) -> None:
    with pytest.raises(ValueError, match="type 'Clustering' of your own data; expected one of Ret"):
        described(beir, "Clustering")
    with pytest.raises(ValueError, match="holds no test or pairs table"):
        described(beir, "STS")
    with pytest.raises(ValueError, match="is no folder"):
        described(beir / "absent", "STS")
    with pytest.raises(ValueError, match="one subset, 'default'"):
        described(beir, "Retrieval", hf_subsets=["en"])
    with pytest.raises(ValueError, match=r"STS12: .*give your task another name"):
        TASKS.describe("STS12", path=beir, task_type="Retrieval")
