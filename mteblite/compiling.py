"""How loops are compiled: by numba, without Python's lock, kept on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the compiled function; its code is kept in numba's cache beside its file.

    Where neither that folder nor the user's can be written, it is compiled in every process.
    """
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)
