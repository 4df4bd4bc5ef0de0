"""mteb's tasks: what they are, and what their data look like.

The measure of a loaded task is mteb itself: a fake encoder notes the texts that `mteb.evaluate`
asks it for, and the loaded frames must hold exactly those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from random import Random
from typing import Any

import pytest

from mteblite.pools.task_data import TaskData
from mteblite.suites.task_description import TaskDescription
from mteblite.tasks.mteb_tasks import MtebTasks

TASKS = MtebTasks()
ARABIC = [
    "acm_Arab",
    "acq_Arab",
    "aeb_Arab",
    "ajp_Arab",
    "apc_Arab",
    "ars_Arab",
    "ary_Arab",
    "arz_Arab",
]

# task: (splits, subsets, {frame of the first cell: rows}), as ../shared/README.md lists them
SERVED: dict[str, tuple[list[str] | None, list[str] | None, dict[str, int]]] = {
    "AJGT.v2": (None, None, {"test": 842}),
    "AmazonCounterfactualClassification": (None, ["en"], {"test": 335}),
    "AskUbuntuDupQuestions": (None, None, {"queries": 104, "corpus": 1170, "top_ranked": 1040}),
    "BIOSSES": (None, None, {"pairs": 100}),
    "Banking77Classification": (None, None, {"test": 3080, "train": 4616}),
    "MLQARetrieval": (
        ["validation"],
        ["ara-ara", "ara-eng", "eng-ara"],
        {"queries": 517, "corpus": 439},
    ),
    "MassiveIntentClassification": (None, ["ar", "en"], {"test": 2033}),
    "NTREXBitextMining": (None, ["arb_Arab-eng_Latn", "eng_Latn-arb_Arab"], {"pairs": 1997}),
    "NamaaMrTydiReranking": (None, None, {"queries": 200, "qrels": 1000, "top_ranked": 1000}),
    "RestaurantReviewSentimentClassification.v2": (None, None, {"test": 2048}),
    "SIB200ClusteringS2S": (None, [*ARABIC, "eng_Latn"], {"documents": 1004, "sampled": 1004}),
    "STS12": (None, None, {"pairs": 3108}),
    "STS13": (None, None, {"pairs": 1500}),
    "STS17": (None, ["ar-ar", "en-ar", "en-en", "es-es"], {"pairs": 250}),
    "STSBenchmark": (None, None, {"pairs": 1379}),
    "SciFact": (None, None, {"queries": 300, "corpus": 5183, "qrels": 339}),
    "SummEvalSummarization.v2": (None, None, {"documents": 100}),
    "Tatoeba": (None, ["ara-eng", "arz-eng"], {"pairs": 477}),
    "TweetSentimentExtractionClassification": (None, None, {"test": 3534}),
    "TwentyNewsgroupsClustering.v2": (None, None, {"documents": 71172, "sampled": 2846}),
    "XNLI": (None, ["ar", "en"], {"pairs": 1365}),
    "XQuADRetrieval": (["validation"], ["ar", "en"], {"queries": 1186, "corpus": 240}),
}


def held(data: TaskData) -> Iterator[list[str]]:
    """Texts of the cells in the order of mteb's calls."""
    for cell in data.cells.values():
        kind = data.description.task_type
        if kind in ("Retrieval", "Reranking"):
            yield cell["queries"]["text"].tolist()
            yield [text for batch in cell["corpus"].batches(100) for text in batch]
        elif kind == "Classification":
            yield cell["train"]["text"].tolist()
            yield cell["test"]["text"].tolist()
        elif kind == "Clustering":
            yield cell["documents"]["text"].iloc[cell["sampled"]].tolist()
        elif kind == "Summarization":
            documents = cell["documents"]
            yield [text for texts in documents["human_summaries"] for text in texts]
            yield [text for texts in documents["machine_summaries"] for text in texts]
        else:
            for column in cell["pairs"].columns[:2]:
                yield cell["pairs"][column].tolist()


def size(cell: dict[str, Any], frame: str) -> int:
    return len(cell[frame])


@pytest.mark.parametrize("name", SERVED)
def test_every_served_task_loads(hub: Any, name: str) -> None:
    splits, subsets, sizes = SERVED[name]
    description = TASKS.describe(name, splits, subsets)
    data = TASKS.load(description)
    assert data.description == description
    assert list(data.cells) == [
        (split, subset) for split in description.splits for subset in description.hf_subsets
    ]
    first = next(iter(data.cells.values()))
    assert {frame: size(first, frame) for frame in sizes} == sizes
    json.dumps(data.protocol)


@pytest.mark.parametrize(
    ("name", "splits", "subsets"),
    [
        ("AJGT.v2", None, None),
        ("AskUbuntuDupQuestions", None, None),
        ("BIOSSES", None, None),
        ("SIB200ClusteringS2S", None, ["ary_Arab", "eng_Latn"]),
        ("SummEvalSummarization.v2", None, None),
        ("Tatoeba", None, ["arz-eng"]),
        ("XNLI", ["validation"], ["ar"]),
        ("XQuADRetrieval", ["validation"], ["ar"]),
    ],
)
def test_frames_hold_the_texts_that_mteb_encodes(
    hub: Any,
    evaluate_noting: Any,
    name: str,
    splits: list[str] | None,
    subsets: list[str] | None,
) -> None:
    description = TASKS.describe(name, splits, subsets)
    calls, _ = evaluate_noting(TASKS.task(description))
    assert list(held(TASKS.load(description))) == calls


def test_candidates_of_a_reranking_task_are_in_its_corpus(hub: Any) -> None:
    cell = TASKS.load(TASKS.describe("AskUbuntuDupQuestions")).cells["test", "default"]
    assert set(cell["top_ranked"]["doc_id"]) <= set(cell["corpus"].ids)
    assert cell["top_ranked"].groupby("query_id").size().tolist() == [10] * 104


def test_parallel_sentences_are_columns_of_one_table(hub: Any, evaluate_noting: Any) -> None:
    subsets = ["eng_Latn-arb_Arab", "arb_Arab-eng_Latn"]
    description = TASKS.describe("NTREXBitextMining", None, subsets)
    assert description.hf_subsets == ("arb_Arab-eng_Latn", "eng_Latn-arb_Arab")  # mteb's order
    cells = TASKS.load(description).cells
    there, back = (cells["test", subset]["pairs"] for subset in description.hf_subsets)
    assert there["sentence1"].tolist() == back["sentence2"].tolist()
    by_language, _ = evaluate_noting(TASKS.task(description))
    assert sorted(map(tuple, by_language)) == sorted(
        (tuple(there["sentence1"]), tuple(there["sentence2"]))
    )


def test_train_rows_are_those_of_mtebs_undersampling(hub: Any) -> None:
    description = TASKS.describe("AmazonCounterfactualClassification", ["test"], ["en"])
    cell = TASKS.load(description).cells["test", "en"]
    task = TASKS.loaded_task(description)
    order = None
    for experiment in range(task.n_experiments):
        rows, order, _ = task._undersample_data(task.dataset["en"]["train"], experiment, order)
        mine = cell["train"].iloc[cell["experiments"][experiment]]
        assert mine["text"].tolist() == rows["text"]
        assert mine["label"].tolist() == rows["label"]


def test_the_clustering_sample_is_that_of_a_fresh_task(hub: Any) -> None:
    cell = TASKS.load(TASKS.describe("TwentyNewsgroupsClustering.v2")).cells["test", "default"]
    # AbsTask seeds with 42, AbsTaskClustering embeds 4 % of the documents.
    assert cell["sampled"] == Random(42).sample(range(71172), k=int(0.04 * 71172))


def test_a_description_is_plain_data() -> None:
    description = TASKS.describe("STS17")
    assert description.task_type == "STS"
    assert description.main_metric == "cosine_spearman"
    assert description.splits == ("test",)
    assert len(description.hf_subsets) == 11
    assert description.source == "mteb"
    stored = json.loads(json.dumps(asdict(description)))
    lists = {key: tuple(value) for key, value in stored.items() if isinstance(value, list)}
    assert TaskDescription(**{**stored, **lists}) == description


def test_a_benchmark_restricts_its_tasks() -> None:
    tasks = TASKS.benchmark("MTEB(eng, v2)").tasks
    assert len(tasks) == 41
    assert tasks["STS17"].description.hf_subsets == ("en-en",)


def test_an_aggregate_is_replaced_by_its_members() -> None:
    names = list(TASKS.benchmark("MTEB(eng, v1)").tasks)
    assert len(names) == len(set(names)) == 55 + 12
    assert "CQADupstackRetrieval" not in names
    assert "CQADupstackUnixRetrieval" in names
    with pytest.raises(ValueError, match=r"aggregate.*CQADupstackAndroidRetrieval"):
        TASKS.describe("CQADupstackRetrieval")


def test_sample_tasks_come_before_mtebs() -> None:
    described = TASKS.describe("LeeDocSTS")
    assert (described.source, described.task_type) == ("sample", "STS")
    assert TASKS.task(described).metadata.name == "LeeDocSTS"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "STSBenchmrak"}, "no task 'STSBenchmrak'.*did you mean STSBenchmark"),
        ({"task": "scifact"}, "did you mean SciFact"),
        ({"task": "LeeDocST"}, "did you mean LeeDocSTS"),
        ({"task": "STS17", "hf_subsets": ["ar-xx"]}, "STS17 has no subset 'ar-xx'.*ar-ar"),
        ({"task": "STS17", "splits": ["dev"]}, "STS17 has no split 'dev'; its splits: test"),
        ({"task": "STS17", "hf_subsets": []}, "STS17 needs at least one subset"),
    ],
)
def test_what_does_not_exist_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TASKS.describe(**arguments)


def test_a_benchmark_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match=r"did you mean.*MTEB\(eng, v2\)"):
        TASKS.benchmark("MTEB(eng,v2)")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "MalteseNewsClassification",
            "MalteseNewsClassification: task type 'MultilabelClassification'",
        ),
        ("CIFAR10", "CIFAR10: task type 'ImageClassification'"),
        ("RuSciBenchYearPublRegression", "task type 'Regression'"),
        ("BioVITAT2IReranking", "BioVITAT2IReranking .Reranking.: has modalities"),
    ],
)
def test_unsupported_types_are_described_and_not_loaded(name: str, message: str) -> None:
    description = TASKS.describe(name)
    assert description.task == name
    with pytest.raises(ValueError, match=message):
        TASKS.load(description)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SciRepEvalDRSMClassification", "cross-validation"),
        ("StakeholderGrounding", "scores with its own code"),
    ],
)
def test_a_protocol_of_its_own_is_refused(name: str, message: str) -> None:
    from mteblite.tasks.task_cells import task_data

    description = TASKS.describe(name)
    with pytest.raises(ValueError, match=f"{name}.*{message}"):
        task_data(TASKS.task(description), description)


def test_another_data_revision_is_an_error() -> None:
    description = replace(TASKS.describe("BIOSSES"), dataset_revision="0123abc")
    with pytest.raises(ValueError, match="BIOSSES: described with data revision '0123abc'"):
        TASKS.task(description)


def test_the_version_is_that_of_the_installed_mteb() -> None:
    import mteb

    assert TASKS.mteb_version() == mteb.__version__
