"""Names that a person mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return `did you mean X, Y? ` for the known names that resemble a name, else ""."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(given.lower(), by_lower, n=3)
    return f"did you mean {', '.join(by_lower[c] for c in close)}? " if close else ""
