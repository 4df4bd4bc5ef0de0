"""Loading a task's data over a network that fails now and then.

huggingface_hub tries each request again by itself; what remains are refusals that outlast it and
downloads cut short. Every attempt starts from a fresh task object, because a task that failed
halfway keeps half of its data and a random generator that has moved on.
"""

from __future__ import annotations

import errno
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mteb.abstasks.abstask import AbsTask
    from tenacity import RetryCallState

logger = logging.getLogger(__name__)

FULL_DISK = {errno.ENOSPC, errno.EDQUOT}

HTTP_CLIENTS = {"httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3"}
"""Whose errors mean the network; which of them huggingface_hub uses depends on its version."""


class TaskDownloadError(ConnectionError):
    """A task's data could not be downloaded; the message names task, data set and cause."""


def load_with_retries(
    fresh: Callable[[], AbsTask],
    *,
    attempts: int,
    wait_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
) -> AbsTask:
    """Return a task made by `fresh`, its data loaded.

    Args:
        fresh: makes a new, unloaded task object.
        attempts: how many to make; one that lost its connection counts as two.
        wait_seconds: pause before the second attempt; doubles each time.
        sleep: replaced in tests.

    Raises:
        TaskDownloadError: every attempt failed, or the hub has no such data set for us.
        ValueError: the data arrived, and mteb's code cannot make a task of them.
        OSError: the disk is full: trying again would not help.
    """
    from tenacity import Retrying, retry_if_exception, wait_exponential

    budget = _Budget(attempts)
    task = fresh()
    dataset = task.metadata.dataset["path"]
    retrying = Retrying(
        retry=retry_if_exception(_is_download_fault),
        stop=lambda state: budget.is_spent(_error_of(state)),
        wait=wait_exponential(multiplier=wait_seconds, max=3600),
        after=lambda state: budget.spend(_error_of(state)),
        before_sleep=lambda state: _prepare_next(dataset, _error_of(state)),
        sleep=sleep,
        reraise=True,
    )
    try:
        for attempt in retrying:
            with attempt:
                task = fresh()
                task.load_data()
    except Exception as error:
        if not _is_download_fault(error):
            raise _unreadable(task, error) from error
        tried = retrying.statistics["attempt_number"]
        raise TaskDownloadError(_message(task, tried, error)) from error
    return task


@dataclass
class _Budget:
    """Attempts that are left: one that lost its connection counts as two.

    huggingface_hub has tried a lost connection five times, but an answer like 503 once.
    """

    left: int

    def spend(self, error: BaseException) -> None:
        self.left -= 2 if _lost_connection(error) else 1

    def is_spent(self, error: BaseException) -> bool:
        return self.left <= 0 or _is_final(error)


def _prepare_next(dataset: str, error: BaseException) -> None:
    logger.warning("data set %s: an attempt failed: %s", dataset, _cause(error))
    if _leaves_bad_files(error):
        _drop_caches(dataset)


def _error_of(state: RetryCallState) -> BaseException:
    error = None if state.outcome is None else state.outcome.exception()
    assert error is not None  # tenacity asks after a failed attempt
    return error


def _unreadable(task: AbsTask, error: Exception) -> Exception:
    """The same error where it says all there is to say, else one that names task and data set."""
    if isinstance(error, OSError | MemoryError):
        return error
    return ValueError(
        f"{task.metadata.name}: mteb could not make the task from data set "
        f"{task.metadata.dataset['path']}: {_cause(error)}"
    )


def _is_download_fault(error: BaseException) -> bool:
    from datasets.exceptions import DatasetsError

    if any(isinstance(e, OSError) and e.errno in FULL_DISK for e in _chain(error)):
        return False
    return (
        isinstance(error, OSError | DatasetsError)
        or _lost_connection(error)
        or _leaves_bad_files(error)
    )


def _lost_connection(error: BaseException) -> bool:
    client = type(error).__module__.partition(".")[0] in HTTP_CLIENTS
    return isinstance(error, ConnectionError) or client


def _is_final(error: BaseException) -> bool:
    """The hub answered and the answer will not change: no such data set, or no access to it."""
    from datasets.exceptions import DatasetNotFoundError
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(error, DatasetNotFoundError):
        return True
    statuses = [
        e.response.status_code
        for e in _chain(error)
        if isinstance(e, HfHubHTTPError) and e.response is not None
    ]
    return any(status in (401, 403, 404) for status in statuses)


def _leaves_bad_files(error: BaseException) -> bool:
    """A file arrived that cannot be read: the next attempt would find it in the cache again."""
    from datasets.exceptions import DatasetBuildError
    from pyarrow import ArrowInvalid

    return any(isinstance(e, ArrowInvalid | DatasetBuildError) for e in _chain(error))


def _drop_caches(dataset: str) -> None:
    """Forget one data set: its downloaded files and what `datasets` built from them."""
    import datasets
    import huggingface_hub

    for folder in (
        Path(huggingface_hub.constants.HF_HUB_CACHE) / f"datasets--{dataset.replace('/', '--')}",
        Path(datasets.config.HF_DATASETS_CACHE) / dataset.replace("/", "___"),
    ):
        shutil.rmtree(folder, ignore_errors=True)


def _message(task: AbsTask, attempts: int, error: BaseException) -> str:
    import huggingface_hub

    dataset = task.metadata.dataset
    advice = (
        "The data set may be private or gated (log in with `hf auth login`) or gone; without it, "
        "leave the task out of the suite"
        if _is_final(error)
        else "Check the network and HF_ENDPOINT, then run again: what is downloaded is kept"
    )
    return (
        f"{task.metadata.name}: data set {dataset['path']} (revision {dataset.get('revision')}) "
        f"could not be downloaded from {huggingface_hub.constants.ENDPOINT}, "
        f"attempts: {attempts}. {_cause(error)}. {advice}"
    )


def _cause(error: BaseException) -> str:
    """The error and what it was raised from, the first line of each."""
    shown = [error] if error.__cause__ is None else [error, error.__cause__]
    lines = [(str(e).strip().splitlines() or [""])[0].rstrip(".") for e in shown]
    return "; ".join(f"{type(e).__name__}: {line}" for e, line in zip(shown, lines, strict=True))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
