"""Share independent work out over threads: numpy and the compiled loops run side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MAX_WORKERS = 4
"""More wait for each other in what is left of Python."""

Given = TypeVar("Given")
Made = TypeVar("Made")


def in_threads(
    function: Callable[[Given], Made], given: Sequence[Given], workers: int | None = None
) -> Iterator[Made]:
    """Yield function(x) for each x, in their order; one failure ends all that has not begun.

    Args:
        function: must not depend on which thread runs it, or when.
        given: arguments.
        workers: threads; None = one per core that this process may use, at most MAX_WORKERS.

    Raises:
        ValueError: there is less than one worker.
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
