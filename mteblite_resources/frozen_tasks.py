"""Frozen resolutions on disk: what each suite's tasks resolved to, and with which mteb.

A packaged suite ships its own (`<suite>.tasks.json` beside the suite file, written by
`python -m mteblite_resources.freezing`), so that it is known without mteb, data or network. A
home keeps what it resolved itself in `resolved/<suite>.json`; that wins.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cachetools import LRUCache, cached

import mteblite.suites as suites_stage
from mteblite.suites.resolution import (
    Resolution,
    applicable,
    merged,
    resolution_from_json,
    resolution_to_json,
    without,
)
from mteblite.suites.suite_file import SuiteFile
from mteblite.task_types.own_files import SUFFIXES
from mteblite_resources.home import Home

SUFFIX = ".tasks.json"
RESOLUTIONS_KEPT = 256


def packaged_suites() -> Path:
    """Return the folder of the suites that ship with the project."""
    return Path(next(iter(suites_stage.__path__))) / "packaged"


def packaged_resolution(file: SuiteFile) -> Resolution | None:
    """Return what ships with a packaged suite, or with the one that a user's suite extends."""
    return _read(packaged_suites() / f"{file.extends or file.name}{SUFFIX}")


def remember_resolution(
    home: Home, file: SuiteFile, found: Resolution, *, whole: bool = False
) -> None:
    """Freeze what a suite's tasks resolved to.

    Args:
        home: where it is kept.
        file: the suite's file.
        found: all its tasks.
        whole: keep every task, those too that ship with the suite as they are found here.
    """
    shipped = applicable(packaged_resolution(file), file.tasks, file.benchmark)
    if not whole:
        found = without(found, [n for n, t in found.tasks.items() if shipped.tasks.get(n) == t])
        if shipped.benchmark is not None:
            found = replace(found, benchmark=None, left_out=())
    found = replace(found, data={t: s for t, s in data_state(file).items() if t in found.tasks})
    write_json(home.resolved / f"{file.name}.json", resolution_to_json(found))


def recall_resolution(home: Home, file: SuiteFile) -> Resolution:
    """Return the frozen tasks of a suite, as far as request and own data are what they were.

    mteb's version is not asked: what was frozen holds until somebody accepts another.
    """
    own = applicable(_read(home.resolved / f"{file.name}.json"), file.tasks, file.benchmark)
    shipped = applicable(packaged_resolution(file), file.tasks, file.benchmark)
    known = merged(own, shipped)
    now = data_state(file)
    return without(known, [t for t in now if known.data.get(t) != now[t]]) if now else known


def data_state(file: SuiteFile) -> dict[str, str]:
    """Say per task of the user's own data when its files changed; content is hashed only then."""
    return {t.task: _folder_state(Path(t.path)) for t in file.tasks if t.path}


def stamp(path: Path) -> tuple[int, int]:
    """Return what changes when a file is written: time and size."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
    with os.fdopen(handle, "w") as stream:
        json.dump(value, stream, indent=1, sort_keys=True)
    Path(scratch).replace(path)


def _read(path: Path) -> Resolution | None:
    """Parsed once per state of the file; the largest has a hundred tasks.

    Raises:
        ValueError: the file is damaged.
    """
    try:
        state = stamp(path)
    except FileNotFoundError:
        return None
    return _parse(path, state)


@cached(LRUCache(RESOLUTIONS_KEPT), lock=threading.RLock())
def _parse(path: Path, _state: tuple[int, int]) -> Resolution | None:
    try:
        value: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return resolution_from_json(value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}, which says what the suite's tasks are, is damaged "
            f"({type(error).__name__}: {error}): remove it, and mteb is asked again"
        ) from error


def _folder_state(folder: Path) -> str:
    """State of the tables that a task can read; the home itself may lie in the same folder."""
    digest = hashlib.sha256()
    tables = [p for place in (folder, folder / "qrels") for p in place.glob("*")]
    for path in sorted(p for p in tables if p.suffix in SUFFIXES and p.is_file()):
        stat = path.stat()
        digest.update(f"{path.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
