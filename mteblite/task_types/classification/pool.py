"""Pool of a Classification task: test texts stratified by label, and mteb's own train rows.

Reads from `TaskData.cells[(split, hf_subset)]`:
    train, test: DataFrame[text, label];
    experiments: list of lists of row numbers of `train`, one list per experiment, as mteb's
        `_undersample_data` draws them for a fresh task. Their order is kept, because the last
        digits of the classifier depend on it.
Protocol: `n_experiments`, `max_iter`, `seed`.

Frames of the pool: `test` [item_id, text_row, code]; `train` [split, hf_subset, experiment,
text_row, code] in the order of the draws. Codes number the labels in sorted order, per cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mteblite.pools.assembly import Texts, assemble, item_frame
from mteblite.pools.items import check_texts, content_ids, draw, item_ids, plain, split_evenly
from mteblite.pools.pool import Pool
from mteblite.pools.task_data import TaskData
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.task_type import Frames


def draw_pool(data: TaskData, settings: PoolSettings) -> Pool:
    """Return the pool: test rows drawn proportionally to the labels, all rows that mteb trains on.

    Raises:
        ValueError: a text or label is missing, or the train rows have a single label.
    """
    name = data.description.task
    quota = split_evenly({c: len(f["test"]) for c, f in data.cells.items()}, settings.max_items)
    texts, items, tests, trains = Texts(), [], [], []
    for cell, frames in data.cells.items():
        where = f"{name} {cell}"
        train, test = frames["train"], frames["test"]
        check_texts(test, ["text"], f"{where} test rows")
        codes = label_codes(train, test, frames["experiments"], where)
        labels = [plain(label) for label in test["label"].tolist()]
        ids = item_ids(cell, identify(frames, data.description.main_metric)[1])
        rows = draw(ids, quota[cell], settings.seed, name, *cell, "pool", strata=labels)
        chosen = [ids[r] for r in rows]
        picked = [labels[r] for r in rows]
        items.append(item_frame(cell, chosen, picked, [_number(label) for label in picked]))
        tests.append(
            pd.DataFrame(
                {
                    "item_id": chosen,
                    "text_row": texts.add([test["text"].iloc[r] for r in rows]),
                    "code": [codes[label] for label in picked],
                }
            )
        )
        trains.append(_train_frame(cell, train, frames["experiments"], codes, texts, where))
    n_available = sum(len(frames["test"]) for frames in data.cells.values())
    frames_of_pool = {"test": tests, "train": trains}
    return assemble(data, settings, texts, items, frames_of_pool, {"n_available": n_available})


def identify(frames: Frames, metric: str) -> tuple[list[int], list[str]]:
    """Return the rows of `test` and what identifies the item in each."""
    test = frames["test"]
    labels = [plain(label) for label in test["label"].tolist()]
    return list(range(len(test))), content_ids([test["text"].tolist(), labels])


def label_codes(
    train: pd.DataFrame, test: pd.DataFrame, experiments: list[list[int]], where: str
) -> dict[Any, int]:
    """Return a code per label, in sorted order, as scikit-learn's classes are.

    Raises:
        ValueError: a label is missing, or the train rows of an experiment have fewer than two.
    """
    labels: set[Any] = set()
    for part, frame in (("train", train), ("test", test)):
        values = [plain(label) for label in frame["label"].tolist()]
        for row, value in enumerate(values):
            if value is None or value != value:
                raise ValueError(
                    f"{where} {part} rows: row {row}, column 'label' is {value!r}; expected a label"
                )
        labels.update(values)
    train_labels = train["label"].tolist()
    for number, rows in enumerate(experiments):
        if len({plain(train_labels[row]) for row in rows}) < 2:
            raise ValueError(
                f"{where}: the train rows of experiment {number} have a single label; a "
                "classifier needs at least two: check the task's train split and label column"
            )
    if not experiments:
        raise ValueError(f"{where}: no experiments; expected mteb's draws of train rows")
    order = sorted(labels, key=lambda label: (isinstance(label, str), label))
    return {label: code for code, label in enumerate(order)}


def _train_frame(
    cell: tuple[str, str],
    train: pd.DataFrame,
    experiments: list[list[int]],
    codes: dict[Any, int],
    texts: Texts,
    where: str,
) -> pd.DataFrame:
    used = sorted({int(row) for rows in experiments for row in rows})
    check_texts(train.iloc[used], ["text"], f"{where} train rows")
    column, labels = train["text"].tolist(), train["label"].tolist()
    numbers = np.concatenate([np.full(len(rows), n) for n, rows in enumerate(experiments)])
    rows = [int(row) for drawn in experiments for row in drawn]
    return pd.DataFrame(
        {
            "split": cell[0],
            "hf_subset": cell[1],
            "experiment": numbers.astype(np.int64),
            "train_index": rows,
            "text_row": texts.add([column[row] for row in rows]),
            "code": [codes[plain(labels[row])] for row in rows],
        }
    )


def _number(label: Any) -> float:
    return float(label) if isinstance(label, int | float | bool) else float("nan")
