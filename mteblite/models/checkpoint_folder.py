"""The model that an argument means: a name, or the folder of a checkpoint."""

from __future__ import annotations

import re
from pathlib import Path

from mteblite.suites.suite_model import SuiteModel


def named_model(model: str | Path) -> SuiteModel:
    """Return the model that a name or the folder of a checkpoint stands for.

    Raises:
        ValueError: the folder does not exist, or the name is not allowed.
    """
    folder = checkpoint_folder(model)
    if folder is None:
        return SuiteModel.named(str(model))
    return SuiteModel.named(folder[0] or "model", path=folder[1])


def checkpoint_folder(model: str | Path) -> tuple[str, str] | None:
    """Return the name and the absolute path of a checkpoint's folder; None for any other name.

    The name is the folder's, with hyphens for characters that a model's name must not have. It is
    "" where no other character is left.

    Raises:
        ValueError: the argument is a path, but the folder does not exist.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        place = folder.resolve()
        name = re.sub(r"\.{2,}", ".", re.sub(r"[^A-Za-z0-9._=-]+", "-", place.name))
        return name.strip(".-_"), str(place)
    if isinstance(model, Path) or model.startswith((".", "/", "~")):
        raise ValueError(f"no folder {str(model)!r}: expected a checkpoint with weights")
    return None
