"""What happens when the hub fails: tried again, mended, or an error that names task and data."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mteblite.tasks.mteb_tasks import MtebTasks
from mteblite.tasks.task_downloads import TaskDownloadError, load_with_retries

TASKS = MtebTasks(attempts=4, wait_seconds=0)


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
    made = []

    def fresh() -> Any:
        made.append(TASKS.task(description))
        if len(made) == 3:  # one object names the data set, the others are one per attempt
            unseen.mend()
        return made[-1]

    with unseen.faulty(truncate=True):
        task = load_with_retries(fresh, attempts=4, wait_seconds=1)
    assert len(task.dataset["test"]) == 100
    assert len(made) == 3


def test_downloads_that_stay_short_name_task_and_data_set(unseen: Any) -> None:
    with (
        unseen.faulty(truncate=True),
        pytest.raises(TaskDownloadError, match=r"BIOSSES: data set mteb/biosses-sts.*attempts: 2"),
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
    with pytest.raises(TaskDownloadError, match=r"STS14: data set mteb/sts14-sts.*attempts: 1"):
        TASKS.load(TASKS.describe("STS14"))


def test_a_subset_that_the_hub_lacks_names_the_task(hub: Any) -> None:
    with pytest.raises(ValueError, match=r"XNLI: mteb could not make the task from .*mteb/xnli"):
        TASKS.load(TASKS.describe("XNLI", hf_subsets=["de"]))
