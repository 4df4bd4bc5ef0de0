"""Whether an error comes from this project or from a library that it calls."""

from __future__ import annotations

import traceback

OURS = ("mteblite", "mteblite_assets", "mteblite_resources")
"""The packages of this project."""
INTERRUPTED = "Query interrupted"
"""What DuckDB's RuntimeError says of a signal during a query, whatever the handler raised."""


def raised_by_us(error: BaseException) -> bool:
    """Say whether a module of this project raised an error: its words are enough then."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    module = str(frames[-1].f_globals.get("__name__", "")) if frames else ""
    return module.split(".")[0] in OURS
