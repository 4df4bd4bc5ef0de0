"""Rare forms of mteb data, on small tasks made here: mteb's own evaluation is the measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mteblite.suites.task_description import TaskDescription
from mteblite.tasks.mteb_tasks import MtebTasks
from mteblite.tasks.task_cells import task_data


def made(kind: str, dataset: Any, subsets: list[str] | None = None, **attributes: Any) -> Any:
    """Return a fresh mteb task over data of this test; reads nothing when it loads."""
    import mteb.abstasks as abstasks
    from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy
    from mteb.abstasks.task_metadata import TaskMetadata

    base = AbsTaskClusteringLegacy if kind == "Legacy" else getattr(abstasks, f"AbsTask{kind}")
    metadata = TaskMetadata(
        name="Made",
        description="made in a test",
        type="Clustering" if kind == "Legacy" else kind,
        category="t2t",
        eval_splits=["test"],
        eval_langs={s: ["eng-Latn"] for s in subsets} if subsets else ["eng-Latn"],
        main_score={"BitextMining": "f1", "PairClassification": "max_ap"}.get(kind, "v_measure"),
        dataset={"path": "made/made", "revision": "1"},
    )
    task = type("Made", (base,), {"metadata": metadata, **attributes})()
    task.dataset, task.data_loaded = dataset, True
    return task


def described(task: Any) -> TaskDescription:
    return TaskDescription(
        task="Made",
        task_type=task.metadata.type,
        main_metric=task.metadata.main_score,
        splits=("test",),
        hf_subsets=tuple(task.hf_subsets),
    )


def hierarchy(n_rows: int, prefix: str) -> dict[str, list[Any]]:
    """Two levels of numbered labels; every third document has no second level."""
    return {
        "sentences": [f"{prefix} {i}" for i in range(n_rows)],
        "labels": [[i % 2] if i % 3 == 0 else [i % 2, 10 + i % 4] for i in range(n_rows)],
    }


def test_the_sample_of_a_second_clustering_cell_follows_the_first(evaluate_noting: Any) -> None:
    """One generator draws samples and bootstraps of all cells: no draw may be missing."""
    from datasets import Dataset, DatasetDict

    def fresh() -> Any:
        data = {
            subset: DatasetDict(test=Dataset.from_dict(hierarchy(n, subset)))
            for subset, n in (("aa", 60), ("bb", 80))
        }
        return made(
            "Clustering",
            data,
            ["aa", "bb"],
            max_fraction_of_documents_to_embed=None,
            max_document_to_embed=30,
            max_documents_per_cluster=24,
            n_clusters=3,
        )

    calls, _ = evaluate_noting(fresh())
    data = task_data(fresh(), described(fresh()))
    held = [c["documents"]["text"].iloc[c["sampled"]].tolist() for c in data.cells.values()]
    assert held == calls
    assert data.protocol["rng_state"] is None


def test_a_generator_used_while_loading_is_handed_on() -> None:
    from datasets import Dataset, DatasetDict

    task = made("Clustering", DatasetDict(test=Dataset.from_dict(hierarchy(50, "x"))))
    task.rng_state.random()
    version, internal, gauss = json.loads(
        json.dumps(task_data(task, described(task)).protocol["rng_state"])
    )
    fresh = made("Clustering", None)
    fresh.rng_state.random()
    assert (version, tuple(internal), gauss) == fresh.rng_state.getstate()


def test_legacy_clustering_keeps_its_sets(evaluate_noting: Any) -> None:
    from datasets import Dataset, DatasetDict

    sets = {"sentences": [["a", "b", "c"], ["d", "e"]], "labels": [[1, 2, 1], [3, 4]]}
    task = made("Legacy", DatasetDict(test=Dataset.from_dict(sets)))
    data = task_data(task, described(task))
    documents = data.cells["test", "default"]["documents"]
    assert data.protocol["legacy"]
    assert documents["set"].tolist() == [0, 0, 0, 1, 1]
    assert documents["labels"].tolist() == [[1], [2], [1], [3], [4]]
    calls, _ = evaluate_noting(task)
    assert [text for call in calls for text in call] == documents["text"].tolist()


def test_pairs_in_one_row_of_lists() -> None:
    from datasets import Dataset, DatasetDict

    row = {"sentence1": [["a", "b"]], "sentence2": [["c", "d"]], "labels": [[1, 0]]}
    task = made("PairClassification", DatasetDict(test=Dataset.from_dict(row)))
    pairs = task_data(task, described(task)).cells["test", "default"]["pairs"]
    assert pairs.values.tolist() == [["a", "c", 1], ["b", "d", 0]]


def test_bitext_with_matches_elsewhere(evaluate_noting: Any) -> None:
    """BUCC's form: sentence i of the first side matches row j of a longer second side."""
    rows = {"sentence1": ["one", "two"], "sentence2": ["x", "two", "one"], "gold": [(0, 2), (5, 1)]}
    task = made("BitextMining", {"test": rows})
    cell = task_data(task, described(task)).cells["test", "default"]
    assert cell["targets"] == rows["sentence2"]
    assert cell["gold"] == rows["gold"]
    assert cell["pairs"]["sentence2"].tolist() == ["one", "two"]
    _, result = evaluate_noting(task)
    assert result.scores["test"][0]["accuracy"] == 1.0


@pytest.mark.parametrize("with_instruction", [True, False])
def test_queries_carry_their_instruction(
    evaluate_noting: Any, tmp_path: Path, with_instruction: bool
) -> None:
    instruction = {"instruction": "find the answer"} if with_instruction else {}
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "d", "text": " padded "}))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "why", **instruction}))
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\td\t1\n")
    tasks = MtebTasks()
    description = tasks.describe("Made", path=tmp_path, task_type="Retrieval")
    cell = tasks.load(description).cells["test", "default"]
    calls, _ = evaluate_noting(tasks.task(description))
    assert calls == [cell["queries"]["text"].tolist(), cell["corpus"].texts([0])]
    assert cell["queries"]["text"][0].endswith("find the answer") is with_instruction


def test_a_missing_text_and_an_empty_cell_are_named() -> None:
    from datasets import Dataset, DatasetDict

    rows = {"sentence1": ["a", None], "sentence2": ["c", "d"]}
    task = made("BitextMining", DatasetDict(test=Dataset.from_dict(rows)))
    with pytest.raises(ValueError, match=r"Made .split 'test'.*'sentence1' in row 1 is None"):
        task_data(task, described(task))
    none: dict[str, list[str]] = {"sentence1": [], "sentence2": []}
    empty = made("BitextMining", DatasetDict(test=Dataset.from_dict(none)))
    with pytest.raises(ValueError, match=r"Made .*not a single pair"):
        task_data(empty, described(empty))
