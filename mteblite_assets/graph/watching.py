"""Finished checkpoints in a folder: which are there, which are new, which still grow.

Layout: `<folder>/<checkpoint>` is scored on every suite that has a lite suite;
`<folder>/<suite>/<checkpoint>` on that suite alone. A checkpoint is finished when its
`_COMPLETE.json` (written last) lists files with their sizes and all are there; one without the
marker when nothing changed between two looks and it holds weights.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from mteblite.suites.suite_model import SuiteModel

MARKER = "_COMPLETE.json"
WEIGHTS = (".safetensors", ".bin", ".npz", ".onnx")
FAMILY = "checkpoints"


@dataclass(frozen=True)
class Arrival:
    """A finished checkpoint for one suite."""

    suite: str
    name: str
    path: str
    family: str
    fingerprint: str

    def as_model(self) -> SuiteModel:
        """Return the candidate to register."""
        return SuiteModel.named(self.name, self.family, path=self.path)


def arrivals(
    folder: Path, suites: list[str], released: list[str], cursor: str
) -> tuple[list[Arrival], str, list[str]]:
    """Return new finished checkpoints, the next cursor, and names that are not finished.

    Args:
        folder: the watched folder.
        suites: names of all suites.
        released: names of the suites that have a lite suite to score on; a checkpoint for
            another waits.
        cursor: what the last look returned, "" at first.
    """
    before: dict[str, dict[str, str]] = json.loads(cursor) if cursor else {}
    seen = before.get("seen", {})
    done = dict(before.get("done", {}))
    now: dict[str, str] = {}
    found: list[Arrival] = []
    waiting: list[str] = []
    for suite, path in _checkpoints(folder, suites):
        key = str(path.relative_to(folder))
        state = _state(path)
        now[key] = state
        if done.get(key) == state:
            continue
        if not (_complete(path) or (seen.get(key) == state and not (path / MARKER).exists())):
            waiting.append(key)
            continue
        targets = [s for s in ([suite] if suite else released) if s in released]
        if not targets:
            waiting.append(f"{key} (no lite suite yet)")
            continue
        done[key] = state
        found += [
            Arrival(target, _name(path), str(path.absolute()), _family(path), state)
            for target in targets
        ]
    cursor = json.dumps({"seen": now, "done": {k: v for k, v in done.items() if k in now}})
    return found, cursor, waiting


def _checkpoints(folder: Path, suites: list[str]) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    for path in sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")):
        if path.name in suites and not _is_checkpoint(path):
            found += [(path.name, p) for p in sorted(path.iterdir()) if _has_weights(p)]
        elif _has_weights(path):
            found.append(("", path))
    return found


def _is_checkpoint(path: Path) -> bool:
    """Whether a folder named like a suite is a checkpoint itself and not a folder of them."""
    names = {p.name for p in path.iterdir() if p.is_file()}
    return bool(names & {MARKER, "modules.json", "config.json"}) or any(
        name.endswith(WEIGHTS) for name in names
    )


def _has_weights(path: Path) -> bool:
    return path.is_dir() and any(
        p.suffix in WEIGHTS for p in path.rglob("*") if not p.name.startswith(".")
    )


def _state(path: Path) -> str:
    files = sorted(p for p in path.rglob("*") if p.is_file())
    listing = [(str(p.relative_to(path)), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    return hashlib.sha256(json.dumps(listing).encode()).hexdigest()[:16]


def _complete(path: Path) -> bool:
    """Whether the marker is there and every file that it lists has its size."""
    try:
        listed = json.loads((path / MARKER).read_text()).get("files", {})
        return all((path / name).stat().st_size == int(size) for name, size in listed.items())
    except (OSError, ValueError, AttributeError, TypeError):
        return False


def _family(path: Path) -> str:
    try:
        return str(json.loads((path / MARKER).read_text()).get("family") or FAMILY)
    except (OSError, ValueError, AttributeError):
        return FAMILY


def _name(path: Path) -> str:
    """Return a name that can be a partition key."""
    safe = re.sub(r"[^A-Za-z0-9._=-]+", "-", path.name).strip(".-_") or "checkpoint"
    return re.sub(r"\.{2,}", ".", safe)
