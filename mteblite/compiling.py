"""Compilation of loops by numba, with a cache on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled function, which releases Python's lock.

    Its code is cached beside its file or in the user's cache folder. Where neither folder can be
    written, every process compiles it.
    """
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)
