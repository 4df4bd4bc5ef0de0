"""Scores that others published come out of our own path: load, draw the whole pool, score it.

`mteb/baseline-random-encoder` maps a text to a vector by a hash, so its scores do not depend on
machine or version; the official MTEB results hold them (../shared/golden).
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mteblite.pools.pool import Pool
from mteblite.suites.pool_settings import PoolSettings
from mteblite.task_types.drawing import draw_pool
from mteblite.task_types.scoring import score_pool
from mteblite.tasks.mteb_tasks import MtebTasks

GOLDEN = Path(__file__).parents[3] / "../shared/golden/official_random_encoder.csv"
WHOLE = PoolSettings(max_items=None, bm25_top=None, max_relevant=None, random_documents=None)


def published() -> list[Any]:
    """The rows as parameters; one that stands for the absent file where there is none."""
    if not GOLDEN.exists():
        absent = pytest.mark.skip(reason="needs ../shared/golden, which is absent")
        return [pytest.param("", "", "", "", marks=absent)]
    with GOLDEN.open() as lines:
        return [
            pytest.param(*row.values(), id="-".join(list(row.values())[:3]))
            for row in csv.DictReader(lines)
        ]


def vectors_of(pool: Pool) -> np.ndarray:
    """Vectors of the pool's texts by the published model, which knows no prompts."""
    import mteb
    from mteb._create_dataloaders import _create_dataloader_from_texts

    model = mteb.get_model("mteb/baseline-random-encoder")
    texts = _create_dataloader_from_texts(pool.texts["text"].tolist(), batch_size=256)
    task = mteb.get_task(pool.meta["task"]).metadata
    return np.asarray(model.encode(texts, task_metadata=task, hf_split="", hf_subset=""))


@pytest.mark.parametrize(("task", "split", "hf_subset", "main_score"), published())
def test_the_published_score_of_the_random_encoder(
    hub: Any, task: str, split: str, hf_subset: str, main_score: str
) -> None:
    tasks = MtebTasks(wait_seconds=0)
    pool = draw_pool(tasks.load(tasks.describe(task, [split], [hf_subset])), WHOLE)
    score = score_pool(pool, vectors_of(pool)).pool_score
    digits = len(main_score.partition(".")[2])
    assert score == pytest.approx(float(main_score), abs=0.5 * 10**-digits + 1e-9)
