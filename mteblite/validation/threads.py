"""Run independent work in threads: NumPy and compiled loops run in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MAX_WORKERS = 4
"""With more threads, the interpreter lock limits the speed."""

Given = TypeVar("Given")
Made = TypeVar("Made")


def in_threads(
    function: Callable[[Given], Made], given: Sequence[Given], workers: int | None = None
) -> Iterator[Made]:
    """Yield function(x) for each x, in order; a failure cancels all calls that have not begun.

    Results must not depend on the thread or the time of the call. By default there is one worker
    per core of this process, at most MAX_WORKERS.

    Raises:
        ValueError: `workers` is below 1.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"work needs at least 1 worker, got {workers}")
    count = workers or min(MAX_WORKERS, len(os.sched_getaffinity(0)))
    if count == 1 or len(given) < 2:
        yield from map(function, given)
        return
    pool = ThreadPoolExecutor(count, thread_name_prefix="validation")
    try:
        yield from pool.map(function, given)
    finally:
        pool.shutdown(cancel_futures=True)
