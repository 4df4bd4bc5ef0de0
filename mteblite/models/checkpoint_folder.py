"""The model that an argument means: a name, or the folder of a checkpoint."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import Path

from mteblite.suites.suite_model import SuiteModel

_NOT_ALLOWED = re.compile(r"[^\w.=-]+")
_STEP = re.compile(r"(checkpoint|step|epoch)[-_]?\d+")
NAME_BYTES = 120


def named_model(model: str | Path) -> SuiteModel:
    """Return the model that a name or the folder of a checkpoint stands for.

    Raises:
        ValueError: the folder does not exist, or the name is not allowed.
    """
    folder = checkpoint_folder(model)
    if folder is None:
        return SuiteModel.named(str(model))
    return SuiteModel.named(folder[0], path=folder[1])


def checkpoint_folder(model: str | Path) -> tuple[str, str] | None:
    """Return the name and the absolute path of a checkpoint's folder; None for any other name.

    Raises:
        ValueError: the argument is a path, but the folder does not exist.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        place = folder.resolve()
        return checkpoint_name(place), str(place)
    if isinstance(model, Path) or model.startswith((".", "/", "~")):
        raise ValueError(f"no folder {str(model)!r}: expected a checkpoint with weights")
    return None


def checkpoint_name(folder: Path) -> str:
    """Return the model name of a checkpoint's folder; other folders of one parent have others.

    It is the folder's name, behind its parent's where it only counts steps (`checkpoint-500`).
    Letters of all scripts stay. Hyphens replace characters that a model's name must not have, and
    a long name is cut; six hex digits of the whole name then keep it apart from similar ones.

    Args:
        folder: an absolute path.
    """
    own = folder.name
    if _STEP.fullmatch(own) and folder.parent.name:
        own = f"{folder.parent.name}-{own}"
    return allowed_name(own)


def allowed_name(text: str) -> str:
    """Return a text as a model name: itself where it is allowed, else with six hex digits of it."""
    own = unicodedata.normalize("NFC", text)
    allowed = re.sub(r"\.{2,}", ".", _NOT_ALLOWED.sub("-", own)).strip(".-_=")
    short = allowed.encode()[:NAME_BYTES].decode(errors="ignore")
    if short == own:
        return own
    digest = hashlib.sha256(own.encode(errors="surrogateescape")).hexdigest()[:6]
    return f"{short or 'checkpoint'}-{digest}"
