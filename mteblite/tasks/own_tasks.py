"""A user's own data as an mteb task object, so that everything downstream is the same path.

Files per type, in the task's folder (see `own_files` for the formats):

- Retrieval: `corpus` [_id or id, text, title (optional)], `queries` [_id or id, text],
  `qrels` or BEIR's `qrels/<split>` [query-id, corpus-id, score];
- Reranking: the same, and `top_ranked` [query-id, corpus-ids (a list)]; without it the judged
  documents of a query are its candidates;
- STS: `<split>` or `pairs` [sentence1, sentence2, score];
- PairClassification: `<split>` or `pairs` [sentence1, sentence2, label (0 or 1)];
- BitextMining: `<split>` or `pairs` [sentence1, sentence2], row i matching row i;
- Classification: `train` and `<split>` [text, label].

The split is `test` unless the suite file says otherwise; there is one subset, `default`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mteblite.pools.metric_names import check_metrics
from mteblite.suites.task_description import TaskDescription
from mteblite.tasks.own_files import (
    column,
    content_revision,
    find_table,
    number,
    read_table,
    require_table,
    strings,
)
from mteblite.tasks.own_retrieval import qrels_file, retrieval

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask

MAIN_METRICS = {
    "Retrieval": "ndcg_at_10",
    "Reranking": "map_at_1000",
    "STS": "cosine_spearman",
    "PairClassification": "max_ap",
    "Classification": "accuracy",
    "BitextMining": "f1",
}
"""Main scores of mteb's own tasks of these types."""

SUBSET = "default"


def describe_own(
    task: str,
    task_type: str | None,
    path: Path,
    splits: Sequence[str] | None,
    hf_subsets: Sequence[str] | None,
    metrics: Sequence[str],
) -> TaskDescription:
    """Return the description of a user's own task; its revision is a hash of its files.

    Raises:
        ValueError: type, folder, a file, a subset or a metric is not one that can be used.
    """
    if task_type not in MAIN_METRICS:
        raise ValueError(
            f"{task}: type {task_type!r} of your own data; expected one of "
            f"{', '.join(MAIN_METRICS)}"
        )
    check_metrics(task, task_type, [MAIN_METRICS[task_type], *metrics])
    if hf_subsets is not None and list(hf_subsets) != [SUBSET]:
        raise ValueError(
            f"{task}: has subsets {list(hf_subsets)}; your own data has one subset, {SUBSET!r}: "
            "leave hf_subsets out, or make a task of each"
        )
    chosen = tuple(splits) if splits is not None else ("test",)
    if not chosen:
        raise ValueError(f"{task}: needs at least one split")
    return TaskDescription(
        task=task,
        task_type=task_type,
        main_metric=MAIN_METRICS[task_type],
        splits=chosen,
        hf_subsets=(SUBSET,),
        dataset_revision=content_revision(_files(task, task_type, path, chosen)),
        source="path",
        path=str(path),
        metrics=tuple(metrics),
    )


def own_task(description: TaskDescription) -> AbsTask:
    """Return an unloaded mteb task object over the user's files.

    Raises:
        ValueError: a file is missing.
    """
    import mteb.abstasks as abstasks
    from mteb.abstasks.task_metadata import TaskMetadata

    task, kind, folder = description.task, description.task_type, Path(description.path or "")
    revision = content_revision(_files(task, kind, folder, description.splits))
    base = getattr(abstasks, "AbsTaskRetrieval" if kind == "Reranking" else f"AbsTask{kind}")
    metadata = TaskMetadata(
        name=task,
        description="The user's own data.",
        type=kind,
        category="t2c" if kind == "Classification" else "t2t",
        eval_splits=list(description.splits),
        # "undetermined": nothing is known of the language, and no score depends on it.
        eval_langs=["und-Zyyy"],
        main_score=description.main_metric,
        dataset={"path": f"own/{task}", "revision": revision},
    )
    made: AbsTask = type(task, (base,), {"metadata": metadata, "load_data": _load_data})()
    made.own_folder = folder
    return made


def _load_data(self: Any, num_proc: int | None = None, **_: Any) -> None:
    """Fill an own task's `dataset` from its files; takes the place of mteb's download."""
    if self.data_loaded:
        return
    kind = self.metadata.type
    fill = FILL[kind]
    self.dataset = fill(self)
    if kind in ("Retrieval", "Reranking"):
        self.dataset = {SUBSET: self.dataset}
    self.data_loaded = True


def _files(task: str, kind: str, folder: Path, splits: Sequence[str]) -> list[Path]:
    """Every file that the task reads, in a fixed order."""
    if kind not in ("Retrieval", "Reranking"):
        train = [require_table(task, folder, "train")] if kind == "Classification" else []
        return train + [_split_file(task, folder, split) for split in splits]
    files = [require_table(task, folder, name) for name in ("corpus", "queries")]
    files += [qrels_file(task, folder, split) for split in splits]
    ranked = find_table(folder, "top_ranked") if kind == "Reranking" else None
    return files + ([] if ranked is None else [ranked])


def _split_file(task: str, folder: Path, split: str) -> Path:
    return require_table(task, folder, split, "pairs")


def _tables(
    read: Callable[[str, Path], dict[str, list[Any]]], extra_splits: Sequence[str] = ()
) -> Callable[[Any], Any]:
    """Return a filler for types whose data is one table per split."""

    def fill(self: Any) -> Any:
        from datasets import Dataset, DatasetDict

        name, folder = self.metadata.name, self.own_folder
        return DatasetDict(
            {
                split: Dataset.from_dict(read(name, _split_file(name, folder, split)))
                for split in (*extra_splits, *self.eval_splits)
            }
        )

    return fill


def _sts(task: str, file: Path) -> dict[str, list[Any]]:
    frame = read_table(task, file)
    return _sentences(task, file, frame) | {
        "score": [
            number(task, file, row, v) for row, v in enumerate(column(task, file, frame, "score"))
        ]
    }


def _labelled_pairs(task: str, file: Path) -> dict[str, list[Any]]:
    frame = read_table(task, file)
    labels = column(task, file, frame, "label", "labels")
    numbers = [number(task, file, row, value) for row, value in enumerate(labels)]
    odd = [value for value in numbers if value not in (0, 1)]
    if odd:
        raise ValueError(f"{task}: {file} has a pair with label {odd[0]:g}; expected 0 or 1")
    return _sentences(task, file, frame) | {"labels": [int(value) for value in numbers]}


def _pairs(task: str, file: Path) -> dict[str, list[Any]]:
    return _sentences(task, file, read_table(task, file))


def _texts(task: str, file: Path) -> dict[str, list[Any]]:
    frame = read_table(task, file)
    return {
        "text": strings(column(task, file, frame, "text")),
        "label": column(task, file, frame, "label"),
    }


def _sentences(task: str, file: Path, frame: pd.DataFrame) -> dict[str, list[Any]]:
    names = ("sentence1", "sentence2")
    return {name: strings(column(task, file, frame, name)) for name in names}


FILL: dict[str, Callable[[Any], Any]] = {
    "Retrieval": retrieval,
    "Reranking": retrieval,
    "STS": _tables(_sts),
    "PairClassification": _tables(_labelled_pairs),
    "BitextMining": _tables(_pairs),
    "Classification": _tables(_texts, extra_splits=("train",)),
}
