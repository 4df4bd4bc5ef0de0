"""mteb's tasks: what they are, what their data look like, and what happens when the hub fails.

The measure of a loaded task is mteb itself: a fake encoder notes the texts that `mteb.evaluate`
asks it for, and the loaded frames must hold exactly those.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from random import Random
from typing import Any

import numpy as np
import pytest

from mteblite_assets.pools.task_data import TaskData, TaskDescription
from mteblite_resources.mteb_tasks import MtebTasks
from mteblite_resources.task_downloads import TaskDownloadError, load_with_retries

TASKS = MtebTasks(attempts=4, wait_seconds=0)
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


class NotingEncoder:
    """Vectors are hashes of the texts; every text asked for is noted, per call."""

    mteb_model_meta: Any = None

    def __init__(self) -> None:
        from mteb.models.model_meta import ModelMeta

        self.mteb_model_meta = ModelMeta.create_empty()
        self.calls: list[list[str]] = []

    def encode(self, inputs: Any, **_: Any) -> np.ndarray:
        texts = [text for batch in inputs for text in batch["text"]]
        self.calls.append(texts)
        digests = [hashlib.sha256(text.encode()).digest() for text in texts]
        vectors = np.array([np.frombuffer(d, np.uint8) for d in digests]).astype(np.float32)
        return (vectors - 127.5) / 512

    def similarity(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        unit = [v / np.linalg.norm(v, axis=-1, keepdims=True) for v in (one, other)]
        return np.asarray(unit[0] @ unit[1].T)  # summarization compares single vectors

    def similarity_pairwise(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.asarray(np.diag(self.similarity(one, other)))


def encoded_by_mteb(description: TaskDescription) -> list[list[str]]:
    import mteb

    encoder = NotingEncoder()
    mteb.evaluate(encoder, TASKS.task(description), cache=None, show_progress_bar=False)
    return encoder.calls


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
    hub: Any, name: str, splits: list[str] | None, subsets: list[str] | None
) -> None:
    description = TASKS.describe(name, splits, subsets)
    assert list(held(TASKS.load(description))) == encoded_by_mteb(description)


def test_candidates_of_a_reranking_task_are_in_its_corpus(hub: Any) -> None:
    cell = TASKS.load(TASKS.describe("AskUbuntuDupQuestions")).cells["test", "default"]
    assert set(cell["top_ranked"]["doc_id"]) <= set(cell["corpus"].ids)
    assert cell["top_ranked"].groupby("query_id").size().tolist() == [10] * 104


def test_parallel_sentences_are_columns_of_one_table(hub: Any) -> None:
    subsets = ["eng_Latn-arb_Arab", "arb_Arab-eng_Latn"]
    description = TASKS.describe("NTREXBitextMining", None, subsets)
    assert description.hf_subsets == ("arb_Arab-eng_Latn", "eng_Latn-arb_Arab")  # mteb's order
    cells = TASKS.load(description).cells
    there, back = (cells["test", subset]["pairs"] for subset in description.hf_subsets)
    assert there["sentence1"].tolist() == back["sentence2"].tolist()
    by_language = encoded_by_mteb(description)
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
    described = TASKS.describe("STS17", benchmark="MTEB(eng, v2)")
    assert described.hf_subsets == ("en-en",)
    chosen = TASKS.describe("STS17", hf_subsets=["ar-ar"], benchmark="MTEB(eng, v2)")
    assert chosen.hf_subsets == ("ar-ar",)
    tasks = TASKS.benchmark_tasks("MTEB(eng, v2)")
    assert len(tasks) == 41
    assert described in tasks


def test_an_aggregate_is_replaced_by_its_members() -> None:
    names = [task.task for task in TASKS.benchmark_tasks("MTEB(eng, v1)")]
    assert len(names) == len(set(names)) == 55 + 12
    assert "CQADupstackRetrieval" not in names
    assert "CQADupstackUnixRetrieval" in names
    with pytest.raises(ValueError, match="aggregate.*CQADupstackAndroidRetrieval"):
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
        ({"task": "STS17", "benchmark": "MTEB(eng,v2)"}, r"did you mean.*MTEB\(eng, v2\)"),
        ({"task": "STS18", "benchmark": "MTEB(eng, v2)"}, "has no task 'STS18'; did you mean STS1"),
    ],
)
def test_what_does_not_exist_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TASKS.describe(**arguments)


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
        ("StakeholderGrounding", "scores with code of its own"),
    ],
)
def test_a_protocol_of_its_own_is_refused(name: str, message: str) -> None:
    from mteblite_resources.task_cells import task_data

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


@pytest.fixture
def unseen(hub: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The hub with BIOSSES in no cache; huggingface_hub's pauses between retries are skipped."""
    hub.forget("mteb/biosses-sts")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return hub


def test_refused_downloads_are_tried_again(unseen: Any) -> None:
    with unseen.faulty(fail_first=3):
        data = TASKS.load(TASKS.describe("BIOSSES"))
        assert unseen.failures_left == 0
    assert len(data.cells["test", "default"]["pairs"]) == 100


def test_a_download_cut_short_is_tried_again(unseen: Any) -> None:
    description = TASKS.describe("BIOSSES")
    with unseen.faulty(truncate=True):
        task = load_with_retries(
            lambda: TASKS.task(description),
            attempts=4,
            wait_seconds=1,
            sleep=lambda seconds: unseen.mend(),
        )
    assert len(task.dataset["test"]) == 100


def test_downloads_that_stay_short_name_task_and_data_set(unseen: Any) -> None:
    with (
        unseen.faulty(truncate=True),
        pytest.raises(TaskDownloadError, match="BIOSSES: data set mteb/biosses-sts.*attempts: 2"),
    ):
        TASKS.load(TASKS.describe("BIOSSES"))


def test_a_hub_that_is_down_names_task_and_data_set(unseen: Any) -> None:
    with (
        unseen.down(),
        pytest.raises(
            ConnectionError, match=f"BIOSSES: .*mteb/biosses-sts.*{unseen.url}.*HF_ENDPOI"
        ),
    ):
        TASKS.load(TASKS.describe("BIOSSES"))
    assert TASKS.load(TASKS.describe("BIOSSES")).cells  # it is up again


def test_data_in_the_cache_need_no_hub(unseen: Any) -> None:
    description = TASKS.describe("BIOSSES")
    TASKS.load(description)
    with unseen.down():
        assert TASKS.load(description).cells


def test_a_damaged_file_is_fetched_again(unseen: Any) -> None:
    description = TASKS.describe("BIOSSES")
    TASKS.load(description)
    blobs = list((unseen.cache / "hub/datasets--mteb--biosses-sts/blobs").iterdir())
    largest = max(blobs, key=lambda blob: blob.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:1000])
    for built in (unseen.cache / "datasets/mteb___biosses-sts").rglob("*.arrow"):
        built.unlink()
    for info in (unseen.cache / "datasets/mteb___biosses-sts").rglob("dataset_info.json"):
        info.unlink()
    assert len(TASKS.load(description).cells["test", "default"]["pairs"]) == 100


def test_a_data_set_that_the_hub_lacks_is_not_tried_again(hub: Any) -> None:
    with pytest.raises(TaskDownloadError, match="STS14: data set mteb/sts14-sts.*attempts: 1"):
        TASKS.load(TASKS.describe("STS14"))


def test_a_subset_that_the_hub_lacks_names_the_task(hub: Any) -> None:
    with pytest.raises(ValueError, match="XNLI: mteb could not make the task from .*mteb/xnli"):
        TASKS.load(TASKS.describe("XNLI", hf_subsets=["de"]))
