"""Checkpoints in a watched folder: which are there, which are new, which wait and why.

Layout: `<folder>/<checkpoint>` is scored on every suite that has a lite suite, and
`<folder>/<suite>/<checkpoint>` on that suite alone. A checkpoint may lie in the folder of its run:
`<folder>/<run>/checkpoint-500`. It is finished when its `_COMPLETE.json`, written last, lists
files with their sizes and all are there. One without the marker is finished when two looks in a row
see the same files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mteblite.models.checkpoint_folder import NAME_BYTES, allowed_name
from mteblite.suites.suite_model import SuiteModel

MARKER = "_COMPLETE.json"
WEIGHTS = (".safetensors", ".bin", ".npz", ".onnx")
CONFIGS = {MARKER, "modules.json", "config.json", "adapter_config.json"}
FAMILY = "checkpoints"
GROWING = "its files changed since the last look, or this is the first look"
NOT_A_MARKER = f'its {MARKER} is not a JSON object like {{"files": {{"model.safetensors": 123}}}}'
NO_MODEL = "holds no model: no config.json, no modules.json, no weights"
NO_LITE_SUITE = "no suite that it is for has a lite suite yet"


@dataclass(frozen=True)
class Arrival:
    """A finished checkpoint for one suite."""

    suite: str
    name: str
    path: str
    family: str

    def as_model(self) -> SuiteModel:
        """Return the candidate to register."""
        return SuiteModel.named(self.name, self.family, path=self.path)


@dataclass
class Look:
    """What one look at the folder found.

    Attributes:
        arrived: new finished checkpoints, one for each suite.
        waiting: folders that are not finished or have no suite yet, with the reason.
        refused: checkpoints that cannot be scored, with the reason; each is told once.
        cursor: what the next look needs.
    """

    arrived: list[Arrival] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    cursor: dict[str, dict[str, str]] = field(default_factory=dict)


def look_at(
    folder: Path,
    suites: list[str],
    released: list[str],
    before: dict[str, dict[str, str]],
    refuse: Callable[[Arrival], str],
) -> Look:
    """Look at a folder of checkpoints.

    Args:
        folder: the watched folder.
        suites: names of all suites.
        released: names of the suites that have a lite suite to score on.
        before: the cursor of the last look, {} at first.
        refuse: says why a checkpoint cannot be scored, "" where it can. A refused one is asked
            about again when its files change.
    """
    look = Look(cursor={"seen": {}, "done": {}})
    for suite, path in _checkpoints(folder, suites, look.waiting):
        key = path.relative_to(folder).as_posix()
        try:
            _judge(
                look,
                key,
                path,
                [s for s in ([suite] if suite else released) if s in released],
                _name(path.relative_to(folder / suite if suite else folder)),
                before,
                refuse,
            )
        except Exception as error:  # one folder must not stop the others
            look.waiting[key] = f"cannot be read ({type(error).__name__}: {error})"
    return look


def _judge(
    look: Look,
    key: str,
    path: Path,
    targets: list[str],
    name: str,
    before: dict[str, dict[str, str]],
    refuse: Callable[[Arrival], str],
) -> None:
    """Add one checkpoint to a look: as new, waiting, refused or known."""
    state = _state(path)
    look.cursor["seen"][key] = state
    marker = _marker(path)
    if marker is None:
        unchanged = before.get("seen", {}).get(key) == state
        marker = _Marker(unfinished="" if unchanged else GROWING)
    reason = marker.unfinished
    if reason or not targets:
        look.waiting[key] = reason or NO_LITE_SUITE
    done = before.get("done", {})
    for target in targets:
        told = f"{target} {key}"
        if reason or done.get(told) == state:
            look.cursor["done"] |= {told: done[told]} if told in done else {}
            continue
        look.cursor["done"][told] = state
        arrival = Arrival(target, name, str(path.absolute()), marker.family)
        if why := refuse(arrival):
            look.refused[key] = why
        else:
            look.arrived.append(arrival)


def _checkpoints(
    folder: Path, suites: list[str], waiting: dict[str, str]
) -> Iterator[tuple[str, Path]]:
    """Yield each checkpoint with the suite whose folder it lies in, else ""."""
    for path in _folders(folder):
        inside = path.name in suites and not _is_checkpoint(path)
        for place in _folders(path) if inside else [path]:
            found = [p for p in (place, *_folders(place)) if _is_checkpoint(p)]
            # The parts of a model lie in folders of their own: 0_Transformer, 1_Pooling.
            if place in found:
                found = [p for p in found if p == place or (p / "modules.json").exists()
                         or re.fullmatch(r"checkpoint-\d+", p.name)]  # fmt: skip
            if not found:
                waiting[place.relative_to(folder).as_posix()] = NO_MODEL
            for p in found:
                yield path.name if inside else "", p


def _folders(path: Path) -> list[Path]:
    return sorted(p for p in _inside(path) if p.is_dir() and not p.name.startswith("."))


def _inside(path: Path) -> list[Path]:
    """What a folder holds; nothing where it is gone meanwhile or may not be read."""
    try:
        return list(path.iterdir())
    except OSError:
        return []


def _is_checkpoint(path: Path) -> bool:
    names = {p.name for p in _inside(path) if p.is_file()}
    return bool(names & CONFIGS) or any(name.endswith(WEIGHTS) for name in names)


def _state(path: Path) -> str:
    """Return a digest of the files of a folder, links followed."""
    listing = []
    for root, folders, names in os.walk(path, followlinks=True):
        folders.sort()
        for name in sorted(names):
            file = Path(root) / name
            if file.exists():  # a link may lead to nothing
                stat = file.stat()
                listing.append((str(file.relative_to(path)), stat.st_size, stat.st_mtime_ns))
        if len(listing) > 100_000:  # a link that leads up the tree
            break
    return hashlib.sha256(json.dumps(listing).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Marker:
    """What a marker says: the family, and why its checkpoint is not finished, or ""."""

    family: str = FAMILY
    unfinished: str = ""


def _marker(path: Path) -> _Marker | None:
    """Read the marker of a checkpoint; None where it has none."""
    file = path / MARKER
    if not file.exists():
        return None
    try:
        read = json.loads(file.read_text(encoding="utf-8-sig"))
        listed = {str(n): int(s) for n, s in read["files"].items()}
        family = read.get("family")
    except (OSError, ValueError, AttributeError, TypeError, LookupError, ArithmeticError,
            RecursionError):  # fmt: skip
        return _Marker(unfinished=NOT_A_MARKER)
    named = isinstance(family, str) and re.fullmatch(r".{1,80}", family)
    return _Marker(family if named else FAMILY, _what_is_missing(path, listed))


def _what_is_missing(path: Path, listed: Mapping[str, int]) -> str:
    """Return which listed file is not there, or has another size, or ""."""
    for name, size in listed.items():
        file = path / name
        if not file.exists():
            return f"{name}, which its {MARKER} lists, is not there"
        if file.stat().st_size != size:
            return f"{name} has {file.stat().st_size} bytes; its {MARKER} lists {size}"
    return ""


def _name(place: Path) -> str:
    """Return a checkpoint's model name, which no other place below the folder has.

    It is the place, `run/checkpoint-500`, with the parts as model names.
    """
    name = "/".join(allowed_name(part) for part in place.parts)
    return name if len(name.encode()) <= NAME_BYTES else allowed_name(place.as_posix())
