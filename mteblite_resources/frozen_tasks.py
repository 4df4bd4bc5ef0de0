"""Frozen resolutions in files: the resolved tasks of each suite, and the version of mteb.

The resolution of a packaged suite is `<suite>.tasks.json` beside the suite file, written by
`python -m mteblite_resources.freezing`; it needs neither mteb nor data nor network. The resolution
of a home is `resolved/<suite>.json`; it takes precedence.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from pathlib import Path

from cachetools import LRUCache, cached

import mteblite.suites as suites_stage
from mteblite.files import checked_json, write_json
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
    """Return the resolution of a packaged suite, or of the one that a user's suite extends."""
    return _read(packaged_suites() / f"{file.extends or file.name}{SUFFIX}")


def remember_resolution(
    home: Home, file: SuiteFile, found: Resolution, *, whole: bool = False
) -> None:
    """Freeze all tasks of a suite in the home; with `whole` also those equal to packaged ones."""
    shipped = applicable(packaged_resolution(file), file.tasks, file.benchmark)
    if not whole:
        found = without(found, [n for n, t in found.tasks.items() if shipped.tasks.get(n) == t])
        if shipped.benchmark is not None:
            found = replace(found, benchmark=None, left_out=())
    found = replace(found, data={t: s for t, s in data_state(file).items() if t in found.tasks})
    write_json(home.resolved / f"{file.name}.json", resolution_to_json(found))


def recall_resolution(home: Home, file: SuiteFile) -> Resolution:
    """Return the frozen tasks of a suite whose request and own data have not changed.

    They do not depend on the installed version of mteb; `mteblite tasks --refresh` replaces them.
    """
    own = applicable(_read(home.resolved / f"{file.name}.json"), file.tasks, file.benchmark)
    shipped = applicable(packaged_resolution(file), file.tasks, file.benchmark)
    known = merged(own, shipped)
    now = data_state(file)
    return without(known, [t for t in now if known.data.get(t) != now[t]]) if now else known


def data_state(file: SuiteFile) -> dict[str, str]:
    """Return by task the state of its own data: a hash of names, sizes and times of its files."""
    return {t.task: _folder_state(Path(t.path)) for t in file.tasks if t.path}


def stamp(path: Path) -> tuple[int, int]:
    """Return time (ns) and size (bytes) of a file, which change when it is written."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


def _read(path: Path) -> Resolution | None:
    """Read a resolution; a file is parsed once per state.

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
        return resolution_from_json(checked_json(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}, the frozen tasks of a suite, is damaged ({type(error).__name__}: {error}): "
            "delete it; the next command resolves the tasks with mteb again"
        ) from error


def _folder_state(folder: Path) -> str:
    """Hash the state of the tables that a task can read; the folder may hold other files."""
    digest = hashlib.sha256()
    tables = [p for place in (folder, folder / "qrels") for p in place.glob("*")]
    for path in sorted(p for p in tables if p.name.endswith(SUFFIXES) and p.is_file()):
        stat = path.stat()
        digest.update(f"{path.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
