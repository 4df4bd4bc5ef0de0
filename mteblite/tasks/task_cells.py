"""From a loaded mteb task to plain frames: what mteb would encode and score, cell by cell.

A cell is one (split, hf_subset). Every reader here follows the `_evaluate_subset` of its abstract
task in `mteb/abstasks` up to the point where mteb encodes, and leaves the rest to the pool. What
mteb draws at random (train rows of classification, samples and bootstraps of clustering) is drawn
here by mteb's code or its random generator, in mteb's order, so that scores agree.

Keys and columns per type: `pools/<type>.py` and the docstrings below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd

from mteblite.pools.task_data import TaskData
from mteblite.suites.task_description import TaskDescription
from mteblite.tasks import task_samples
from mteblite.tasks.task_columns import (
    Cell,
    cell_rows,
    column_name,
    numbers_of,
    require_rows,
    texts_of,
    values_of,
)
from mteblite.tasks.task_retrieval import retrieval, retrieval_protocol

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask


def task_data(task: AbsTask, description: TaskDescription) -> TaskData:
    """Return a loaded task's data as frames.

    Args:
        task: fresh and loaded; clustering depends on its random generator being untouched.
        description: which cells, in mteb's order of evaluation: splits, and subsets within them.

    Raises:
        ValueError: the task's protocol differs from its type's, or its data are malformed.
    """
    read, protocol_of = READERS[description.task_type]
    _require_usual_protocol(task, description)
    protocol = protocol_of(task)
    cells = {
        (split, subset): read(task, Cell(description.task, split, subset), protocol)
        for split in description.splits
        for subset in description.hf_subsets
    }
    return TaskData(description=description, cells=cells, protocol=protocol)


def _require_usual_protocol(task: AbsTask, description: TaskDescription) -> None:
    """A task class that scores with code of its own would get another score here."""
    own = [
        cls.__name__
        for cls in type(task).__mro__
        if not cls.__module__.startswith(("mteb.abstasks", "builtins", "abc"))
        and {"evaluate", "_evaluate_subset"} & vars(cls).keys()
    ]
    if own:
        raise ValueError(
            f"{description.task} ({description.task_type}): {own[0]} scores with code of its own "
            "instead of its type's; such tasks are not supported. Leave the task out of the suite"
        )


def _classification(task: Any, cell: Cell, protocol: dict[str, Any]) -> dict[str, Any]:
    """`train`, `test` [text, label]; `experiments`: row numbers of `train`, one list each.

    `train` holds only the rows that some experiment draws, all that mteb ever encodes of them;
    its column `source_row` says where each was.
    """
    text, label = column_name(task, "input_column_name"), task.label_column_name
    known = task.dataset
    by_split = (
        known if cell.subset not in known and cell.subset == "default" else known[cell.subset]
    )
    train, test = by_split[task.train_split], by_split[cell.split]
    require_rows(cell, f"row in the train split {task.train_split!r}", len(train))
    require_rows(cell, "row", len(test))
    drawn = task_samples.train_rows(task, values_of(train[label]))
    kept = sorted(set().union(*drawn))
    position = {row: i for i, row in enumerate(kept)}
    chosen = train.select(kept)
    return {
        "train": pd.DataFrame(
            {
                "text": texts_of(cell, text, chosen[text]),
                "label": values_of(chosen[label]),
                "source_row": kept,
            }
        ),
        "test": pd.DataFrame(
            {"text": texts_of(cell, text, test[text]), "label": values_of(test[label])}
        ),
        "experiments": [[position[row] for row in rows] for rows in drawn],
    }


def _classification_protocol(task: Any) -> dict[str, Any]:
    from mteb._evaluators.sklearn_evaluator import SklearnEvaluator
    from sklearn.linear_model import LogisticRegression

    name, model = task.metadata.name, task.evaluator_model
    if task.is_cross_validation:
        raise ValueError(
            f"{name} (Classification): scores by cross-validation on its whole data, for which "
            "there are no fixed items. Leave the task out of the suite"
        )
    usual = LogisticRegression(max_iter=getattr(model, "max_iter", 100)).get_params()
    usual["random_state"] = model.get_params().get("random_state")
    if (task.evaluator, type(model), model.get_params()) != (
        SklearnEvaluator,
        LogisticRegression,
        usual,
    ):
        raise ValueError(
            f"{name} (Classification): classifies by {task.evaluator.__name__} with {model}; only "
            "SklearnEvaluator with LogisticRegression is supported. Leave the task out of the suite"
        )
    return {
        "n_experiments": int(task.n_experiments),
        "samples_per_label": int(task.samples_per_label),
        "train_split": task.train_split,
        "max_iter": int(model.max_iter),
        "seed": int(task.seed),  # mteb makes it the classifier's random state
    }


def _pairs(task: Any, cell: Cell, protocol: dict[str, Any]) -> dict[str, Any]:
    """`pairs` [text1, text2, label]; version 1 data sets hold all pairs in one row of lists."""
    rows = cell_rows(task, cell)
    first, second = (column_name(task, f"input{i}_column_name") for i in (1, 2))
    label = task.label_column_name
    if len(rows) == 1:
        # Columns as they are: a data set made of them would take seconds.
        rows = {name: values[:] for name, values in rows[0].items()}
    require_rows(cell, "pair", len(rows[first]))
    labels = [int(number) for number in numbers_of(cell, label, rows[label])]
    odd = sorted(set(labels) - {0, 1})
    if odd:
        raise ValueError(f"{cell}: label {odd[0]} of a pair; expected 0 or 1")
    return {
        "pairs": pd.DataFrame(
            {
                "text1": texts_of(cell, first, rows[first]),
                "text2": texts_of(cell, second, rows[second]),
                "label": labels,
            }
        )
    }


def _pair_protocol(task: Any) -> dict[str, Any]:
    """Prompt types of the two texts; None where mteb encodes without one."""
    return {
        f"input{i}_prompt_type": None if kind is None else str(kind.value)
        for i, kind in ((1, task.input1_prompt_type), (2, task.input2_prompt_type))
    }


def _sts(task: Any, cell: Cell, protocol: dict[str, Any]) -> dict[str, Any]:
    """`pairs` [text1, text2, gold], gold on the data set's own scale."""
    rows = cell_rows(task, cell)
    first, second = column_name(task, "column_names", 0), column_name(task, "column_names", 1)
    require_rows(cell, "pair", len(rows))
    return {
        "pairs": pd.DataFrame(
            {
                "text1": texts_of(cell, first, rows[first]),
                "text2": texts_of(cell, second, rows[second]),
                "gold": numbers_of(cell, "score", rows["score"]),
            }
        )
    }


def _range_protocol(task: Any) -> dict[str, Any]:
    return {"min_score": float(task.min_score), "max_score": float(task.max_score)}


def _summarization(task: Any, cell: Cell, protocol: dict[str, Any]) -> dict[str, Any]:
    """`documents` [text, human_summaries, machine_summaries, relevance], the last three lists."""
    rows = cell_rows(task, cell)
    require_rows(cell, "document", len(rows))
    columns = {
        "human_summaries": task.human_summaries_column_name,
        "machine_summaries": task.machine_summaries_column_name,
    }
    frame: dict[str, list[Any]] = {
        "text": texts_of(cell, task.text_column_name, rows[task.text_column_name])
    }
    for name, column in columns.items():
        frame[name] = [texts_of(cell, column, summaries) for summaries in values_of(rows[column])]
    frame["relevance"] = [
        [float(r) for r in line] for line in values_of(rows[task.relevancy_column_name])
    ]
    return {"documents": pd.DataFrame(frame)}


def _summarization_protocol(task: Any) -> dict[str, Any]:
    # The deprecated evaluator, SummEval's before .v2, leaves documents with one constant side out.
    return {**_range_protocol(task), "evaluator": task.evaluator.__name__}


def _bitext(task: Any, cell: Cell, protocol: dict[str, Any]) -> dict[str, Any]:
    """`pairs` [sentence1, sentence2], row by row.

    Where the matches are not (BUCC): `targets`, all sentences to search, and `gold` [(i, j)], the
    row j of `targets` that matches sentence i.
    """
    if protocol["parallel_subsets"]:  # one table, a column per language: NTREX, Flores, IN22
        first, second = cell.subset.split("-")
        rows = task.dataset[cell.split]
    else:
        first, second = "sentence1", "sentence2"
        rows = cell_rows(task, cell)
    sentences1, sentences2 = (
        texts_of(cell, first, rows[first]),
        texts_of(cell, second, rows[second]),
    )
    require_rows(cell, "pair", len(sentences1))
    # As in mteb, only data of a dict may bring its own gold: for a table, `in` looks at rows.
    gold = [(int(i), int(j)) for i, j in rows["gold"]] if isinstance(rows, dict) else None
    if gold is None or all(j == i for i, (_, j) in enumerate(gold)):
        return {"pairs": pd.DataFrame({"sentence1": sentences1, "sentence2": sentences2})}
    matches = [sentences2[j] for _, j in gold]
    return {
        "pairs": pd.DataFrame({"sentence1": sentences1, "sentence2": matches}),
        "gold": gold,
        "targets": sentences2,
    }


def _bitext_protocol(task: Any) -> dict[str, Any]:
    return {"parallel_subsets": bool(task.parallel_subsets)}


Reader = Callable[[Any, Cell, dict[str, Any]], dict[str, Any]]

READERS: dict[str, tuple[Reader, Callable[[Any], dict[str, Any]]]] = {
    "Retrieval": (retrieval, retrieval_protocol),
    "Reranking": (retrieval, retrieval_protocol),
    "Classification": (_classification, _classification_protocol),
    "PairClassification": (_pairs, _pair_protocol),
    "STS": (_sts, lambda task: {**_range_protocol(task), **_pair_protocol(task)}),
    "Clustering": (task_samples.clustering, task_samples.clustering_protocol),
    "Summarization": (_summarization, _summarization_protocol),
    "BitextMining": (_bitext, _bitext_protocol),
}
