"""What `score MODEL` means where MODEL is a checkpoint's folder."""

from __future__ import annotations

import re
from pathlib import Path

from mteblite_assets.cli.session import UsageError


def checkpoint_folder(model: str) -> tuple[str, str] | None:
    """Return the name and the absolute path of a checkpoint's folder; None for any other name.

    The name is the folder's, with signs that a model's name must not have replaced; it is "" where
    nothing is left.

    Raises:
        UsageError: it looks like a folder, but there is none.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        place = folder.resolve()
        name = re.sub(r"\.{2,}", ".", re.sub(r"[^A-Za-z0-9._=-]+", "-", place.name))
        return name.strip(".-_"), str(place)
    if model.startswith((".", "/", "~")):
        raise UsageError(f"no folder {model!r}: expected a checkpoint with weights")
    return None
