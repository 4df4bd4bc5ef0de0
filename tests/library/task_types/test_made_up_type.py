"""A type that only this file knows goes from a loaded task to a lite score and a release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mteblite.calibrations.fitted_task import FittedTask
from mteblite.calibrations.task_fit import TaskFits
from mteblite.calibrations.variant import Variant
from mteblite.item_parameters.evidence import TaskEvidence
from mteblite.lite_scores.observing import observe_selection
from mteblite.lite_scores.prediction import predict_tasks
from mteblite.outcomes.cells import align, cells_of, mean_of_cells
from mteblite.outcomes.pool_score import PoolScore
from mteblite.outcomes.similarity import paired, prepare
from mteblite.pools.assembly import Texts, assemble, item_frame
from mteblite.pools.items import Cell, content_ids, draw, item_ids, split_evenly
from mteblite.pools.pool import Pool
from mteblite.pools.restriction import restrict
from mteblite.pools.task_data import TaskData
from mteblite.releases.released_task import rebuild_pool, release_task
from mteblite.releases.released_tasks import cut_to_selection
from mteblite.seeds import generator
from mteblite.selections.item_costs import item_costs
from mteblite.suites.pool_settings import PoolSettings
from mteblite.suites.task_description import TaskDescription
from mteblite.task_types import columns, registry
from mteblite.task_types.columns import cut_rows
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.own_files import own_tables
from mteblite.task_types.own_table import OwnTable
from mteblite.task_types.scoring import score_pool, set_statistic
from mteblite.task_types.task_type import Frames, TaskType
from mteblite.task_types.texts import columns_of_items, texts_in
from mteblite.task_types.workload import Workload, estimate_workload
from mteblite.tasks.own_tasks import describe_own
from mteblite.tasks.task_cells import task_data

SIDES = ("anchor", "near", "far")
"""Texts of an item: is `near` more similar to `anchor` than `far` is?"""


def read_cell(task: Any, cell: columns.TaskCell, protocol: dict[str, Any]) -> dict[str, Any]:
    rows = columns.cell_rows(task, cell)
    texts = {side: columns.texts_of(cell, side, rows[side]) for side in SIDES}
    return {"triplets": pd.DataFrame(texts)}


def identify(frames: Frames, metric: str) -> tuple[list[int], list[str]]:
    triplets = frames["triplets"]
    return list(range(len(triplets))), content_ids([triplets[s].tolist() for s in SIDES])


def draw_triplets(data: TaskData, settings: PoolSettings) -> Pool:
    quota = split_evenly({c: len(f["triplets"]) for c, f in data.cells.items()}, settings.max_items)
    texts, items, parts = Texts(), [], []
    for cell, frames in data.cells.items():
        ids = item_ids(cell, identify(frames, "")[1])
        rows = draw(ids, quota[cell], settings.seed, data.description.task, *cell)
        chosen = [ids[r] for r in rows]
        items.append(item_frame(cell, chosen))
        columns_of = {
            f"{side}_row": texts.add(frames["triplets"][side].iloc[rows].tolist()) for side in SIDES
        }
        parts.append(pd.DataFrame({"item_id": chosen, **columns_of}))
    meta = {"n_available": sum(len(f["triplets"]) for f in data.cells.values())}
    return assemble(data, settings, texts, items, {"triplets": parts}, meta)


def score_triplets(pool: Pool, vectors: np.ndarray, *, similarity: str = "cosine") -> PoolScore:
    rows = align(pool.frames["triplets"], pool.items)
    anchor, near, far = (prepare(vectors[rows[f"{s}_row"]], similarity) for s in SIDES)
    margins = (paired(anchor, near, similarity) - paired(anchor, far, similarity)) / 2.0
    outcomes = margins.astype(float)
    cells = [float(outcomes[r].mean()) for r in cells_of(pool.items)]
    return PoolScore(outcomes, mean_of_cells(cells))


def own_table(table: OwnTable) -> dict[str, list[Any]]:
    return {side: table.texts(side) for side in SIDES}


TRIPLETS = TaskType(
    name="Triplets",
    outcome="half of the cosine of the near text less that of the far one",
    metrics=("margin",),
    texts_per_item=3.0,
    lowest_score=-1.0,
    draw_pool=draw_triplets,
    score_pool=score_triplets,
    identify=identify,
    texts=texts_in(triplets=SIDES),
    read_cell=read_cell,
    protocol=lambda task: {},
    cut=cut_rows,
    text_kinds=columns_of_items(*(f"{side}_statistics" for side in SIDES)),
    own_data=own_tables("margin", "AbsTask", own_table),
    mean_is_score=lambda metric: True,
)

ABOUT = TaskDescription("Shades", "Triplets", "margin", ("test",), ("en", "fr"), "r1")


class Rows:
    """What a data set offers to the readers: columns by name, and `select`."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def __getitem__(self, name: str) -> list[str]:
        return self.frame[name].tolist()

    def select(self, rows: list[int]) -> Rows:
        return Rows(self.frame.iloc[rows].reset_index(drop=True))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "TASK_TYPES", (*registry.TASK_TYPES, TRIPLETS))


def loaded_task() -> Any:
    """Stand in for a task object that mteb has loaded."""
    dataset = {
        subset: {
            "test": Rows(pd.DataFrame({s: [f"{subset} {s} {i}" for i in range(60)] for s in SIDES}))
        }
        for subset in ("en", "fr")
    }
    return SimpleNamespace(dataset=dataset, rng_state=None, np_rng=None)


def vectors_of(pool: Pool, model: int) -> np.ndarray:
    """Vectors of a made-up model, which places near texts the better the higher its number is."""
    skill = 0.3 + model / 10
    made = []
    for text in pool.texts["text"]:
        subset, side, number = text.split()
        topic = generator("topic", subset, number).normal(size=16)
        noise = generator("noise", text, model).normal(size=16)
        made.append(noise + (0.0 if side == "far" else skill) * topic)
    return np.array(made, dtype=np.float32)


def test_from_pool_to_lite_score() -> None:
    data = task_data(loaded_task(), ABOUT)
    pool = draw_pool(data, PoolSettings(max_items=80))
    assert len(pool.items) == 80
    scores = [score_pool(pool, vectors_of(pool, model)) for model in range(13)]
    truth = [score_pool(draw_pool(data, PoolSettings(None)), vectors_of_whole(data, m)).pool_score
             for m in range(13)]  # fmt: skip
    fitted = fitted_on(pool, scores[:12], truth[:12])
    cut = restrict(pool, fitted.selection["item_id"].tolist())
    assert len(cut.texts) == 3 * 20
    observed = observe_selection(fitted.kind, cut, vectors_of(cut, 12), fitted.selection)
    row = predict_tasks([fitted], {ABOUT.task: observed}).iloc[0]
    assert row["predicted"] == pytest.approx(truth[12], abs=0.05)
    assert row["n_items"] == 20
    assert_released(data, pool, fitted, observed)


def vectors_of_whole(data: TaskData, model: int) -> np.ndarray:
    return vectors_of(draw_pool(data, PoolSettings(None)), model)


def fitted_on(pool: Pool, scores: list[PoolScore], truth: list[float]) -> FittedTask:
    models = tuple(f"m{i:02d}" for i in range(len(scores)))
    evidence = TaskEvidence(
        task=ABOUT.task,
        task_type=ABOUT.task_type,
        kind=registry.task_kind(ABOUT.task_type),
        items=pool.items,
        models=models,
        families=models,
        outcomes=np.array([s.outcomes for s in scores]),
        full_scores=np.array(truth),
        pool_scores=np.array([s.pool_score for s in scores]),
    )
    return TaskFits(evidence, 20, ("suite", 0)).fitted(Variant.parse("anchor/gp/anchorset"))


def assert_released(data: TaskData, pool: Pool, fitted: FittedTask, observed: np.ndarray) -> None:
    """A release finds the items again in the data, and cuts a loaded task to them."""
    released = release_task(ABOUT, fitted, pool, pool.pool_hash())
    assert "text" not in released.pool.texts.columns
    rebuilt = rebuild_pool(released, data)
    again = observe_selection(fitted.kind, rebuilt, vectors_of(rebuilt, 12), fitted.selection)
    np.testing.assert_array_equal(again, observed)
    task = loaded_task()
    cut_to_selection(task, ABOUT, released)
    left = [len(task.dataset[subset]["test"]["near"]) for subset in ABOUT.hf_subsets]
    assert sum(left) == 20


def test_what_the_rest_of_the_project_asks_is_answered(tmp_path: Path) -> None:
    facts = registry.type_facts("Triplets", "margin")
    assert facts == {"lowest_score": -1.0, "lowest_outcome": -1.0, "mean_is_score": True}
    assert item_costs("Triplets", 2).tolist() == [3.0, 3.0]
    text = {"unique_texts": 100, "average_text_length": 8.0}
    statistics: Mapping[str, Any] = {
        "test": {"num_samples": 100, **{f"{side}_statistics": text for side in SIDES}}
    }
    found = estimate_workload(ABOUT, statistics, PoolSettings(max_items=50), None)
    assert found == Workload(2 * 3 * 25, 2 * 3 * 25 * 2)
    (tmp_path / "test.csv").write_text("anchor,near,far\na,b,c\n")
    described = describe_own("Mine", "Triplets", tmp_path, None, None, ())
    assert (described.main_metric, described.hf_subsets) == ("margin", ("default",))


def test_errors_name_the_type() -> None:
    with pytest.raises(ValueError, match="'Triplets' has no set statistic"):
        set_statistic("Triplets", np.ones((1, 1)), pd.DataFrame(), np.ones(1))
    with pytest.raises(ValueError, match="metric 'map' is not supported; Triplets has: margin"):
        describe_own("Mine", "Triplets", Path(), None, None, ["map"])
    cell: Cell = ("test", "en")
    unknown = TaskDescription("T", "Quadruplets", "m", ("test",), ("en",))
    with pytest.raises(
        ValueError, match=r"T is a Quadruplets task, which mteblite cannot reduce; .*Triplets"
    ):
        draw_pool(TaskData(unknown, {cell: {}}), PoolSettings())
