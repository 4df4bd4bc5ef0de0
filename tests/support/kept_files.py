"""What an earlier version wrote, unpacked: see `kept/SOURCE.md`."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parent / "kept"
SUITE = "kept"
MODEL = "package:wordllama-64"


def unpack_home(folder: Path) -> Path:
    """Unpack the home and return it."""
    return _unpack("home", folder / "home")


def unpack_release(folder: Path) -> Path:
    """Unpack the release and return its folder."""
    return _unpack("release", folder) / "release"


def expected() -> dict[str, Any]:
    """What that version printed of home and release."""
    found: dict[str, Any] = json.loads((KEPT / "expected.json").read_text(encoding="utf-8"))
    return found


def _unpack(name: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(KEPT / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder
