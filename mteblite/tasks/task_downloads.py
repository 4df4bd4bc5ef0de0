"""Loading a task's data with several attempts at a download.

huggingface_hub tries each request again. Two faults remain: refusals that last longer, and
downloads that are cut short. Every attempt starts from a fresh task object, because a failed task
keeps some of its data and a used random generator.
"""

from __future__ import annotations

import errno
import logging
import shutil
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
"""Their errors are network errors; huggingface_hub's version determines which one it uses."""


class TaskDownloadError(ConnectionError):
    """A task's data could not be downloaded; the message names task, data set and cause."""


def load_with_retries(
    fresh: Callable[[], AbsTask], *, attempts: int, wait_seconds: float
) -> AbsTask:
    """Return a task made by `fresh`, with its data loaded.

    Args:
        fresh: makes a new, unloaded task object.
        attempts: most attempts; one that lost its connection counts as two.
        wait_seconds: pause before the second attempt; doubles each time.

    Raises:
        TaskDownloadError: every attempt failed, or the hub refuses access to the data set.
        ValueError: mteb's code cannot make a task of the downloaded data.
        OSError: the disk is full.
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
    """Attempts that are left; one that lost its connection counts as two.

    huggingface_hub tries a lost connection five times, but an answer like 503 once.
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
    assert error is not None  # tenacity calls this after failed attempts only
    return error


def _unreadable(task: AbsTask, error: Exception) -> Exception:
    """A system error unchanged; any other error as one that names task and data set."""
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
    """Whether the hub answered that the data set does not exist or cannot be accessed."""
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
    """Whether an unreadable file is in the cache, where the next attempt would find it."""
    from datasets.exceptions import DatasetBuildError
    from pyarrow import ArrowInvalid

    return any(isinstance(e, ArrowInvalid | DatasetBuildError) for e in _chain(error))


def _drop_caches(dataset: str) -> None:
    """Remove one data set's downloaded files, and the files that `datasets` built from them."""
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
        "The data set may be private, gated or removed: log in with `hf auth login`, or leave the "
        "task out of the suite"
        if _is_final(error)
        else "Check the network and HF_ENDPOINT, then run again: downloaded files are kept"
    )
    return (
        f"{task.metadata.name}: data set {dataset['path']} (revision {dataset.get('revision')}) "
        f"could not be downloaded from {huggingface_hub.constants.ENDPOINT}, "
        f"attempts: {attempts}. {_cause(error)}. {advice}"
    )


def _cause(error: BaseException) -> str:
    """The first line of the error and of its cause."""
    shown = [error] if error.__cause__ is None else [error, error.__cause__]
    lines = [(str(e).strip().splitlines() or [""])[0].rstrip(".") for e in shown]
    return "; ".join(f"{type(e).__name__}: {line}" for e, line in zip(shown, lines, strict=True))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
