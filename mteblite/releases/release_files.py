"""A release as a folder of files: written complete or not at all, checked when read, never changed.

README.md  SELECTION.md  release.json  checksums.sha256
calibrations.parquet  intervals.parquet  joint.json (where there is a joint calibration)
tasks/<task>/items.parquet  tasks/<task>/fitted.json  tasks/<task>/pool/*
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from mteblite.files import sha256_of
from mteblite.releases.release_card import card
from mteblite.releases.released_task import ReleasedTask, items_table
from mteblite.releases.suite_release import FORMAT, SuiteRelease, task_folders

MANIFEST = "release.json"
CHECKSUMS = "checksums.sha256"
KEYS = frozenset({
    "suite", "version", "content_hash", "created_from", "variant", "headline", "max_tokens",
    "versions", "tasks",
})  # fmt: skip
"""Required keys of `release.json`."""


class ReleaseError(ValueError):
    """A folder that is no release, is damaged, or holds another release."""


def write_release(release: SuiteRelease, folder: Path) -> bool:
    """Write a release into a folder, complete or not at all.

    Args:
        release: the release.
        folder: absent or empty, or the folder of this release.

    Returns:
        Whether it was written; False: the folder already holds it.

    Raises:
        ReleaseError: the folder holds other files, or this release with damaged files.
        OSError: the disk is full, or the folder cannot be written; no file is left.
    """
    if holds_release(folder, release.content_hash, release.version):
        return False
    with _moved_when_complete(folder) as scratch:
        _write_files(release, scratch)
    return True


def copy_release(source: Path, folder: Path) -> bool:
    """Copy a release; see `write_release`."""
    release = read_release(source)
    if holds_release(folder, release.content_hash, release.version):
        return False
    with _moved_when_complete(folder) as scratch:
        shutil.copytree(source, scratch, dirs_exist_ok=True)
    return True


def holds_release(folder: Path, content_hash: str, version: str) -> bool:
    """Return whether a folder holds this release; False = it is absent or empty.

    Raises:
        ReleaseError: it holds other files, or this release with damaged files.
    """
    if folder.exists() and not folder.is_dir():
        raise ReleaseError(f"{folder} is a file; expected a folder or an unused name")
    if not folder.is_dir() or not any(folder.iterdir()):
        return False
    if not (folder / MANIFEST).is_file():
        raise ReleaseError(
            f"{folder} holds files that are no release: choose an empty or a new folder"
        )
    there = read_manifest(folder)
    if there["content_hash"] != content_hash:
        raise ReleaseError(
            f"{folder} holds release {there['version']}, and this is {version}; a release is never "
            "overwritten: choose another folder"
        )
    read_release(folder)
    return True


def read_release(folder: Path) -> SuiteRelease:
    """Read a release: compare its files with their checksums, and its content with its version.

    Raises:
        ReleaseError: the folder is no release, its format is unknown, a file is damaged, a task is
            missing, or a number is none.
    """
    from mteblite.releases.release_checks import check_repeated
    from mteblite.releases.release_reading import DamagedPartError, release_of

    manifest = read_manifest(folder)
    check_files(folder)
    try:
        release = release_of(folder, manifest)
    except DamagedPartError as error:
        raise ReleaseError(f"{folder} is damaged: {error}: export the release again") from error
    # Checksums can be recomputed after a change. The version is a hash of the content.
    if release.content_hash != manifest["content_hash"] or release.version != manifest["version"]:
        raise ReleaseError(
            f"{folder} is named release {manifest['version']}, but its content is "
            f"{release.version}: it was changed after it was written; export it again"
        )
    check_repeated(release, folder, manifest)
    return release


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read `release.json`.

    Raises:
        ReleaseError: the file is absent or damaged, or its format is newer than this version.
    """
    if not folder.is_dir():
        raise ReleaseError(f"no folder {folder}: expected one that `mteblite export` wrote")
    path = folder / MANIFEST
    if not path.is_file():
        raise ReleaseError(
            f"{folder} is no release: it has no {MANIFEST}; expected a folder that "
            "`mteblite export` wrote"
        )
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ReleaseError(f"{path} is damaged: {error}") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(found, int) or found < 1:
        raise ReleaseError(f"{path} is damaged: its format is {found!r}: export the release again")
    if found > FORMAT:
        versions = manifest.get("versions")
        writer = versions.get("mteblite", "") if isinstance(versions, dict) else ""
        raise ReleaseError(
            f"{folder} is a release of format {found}, and mteblite {version('mteblite')} reads "
            f"formats up to {FORMAT}: install mteblite {writer} or newer"
        )
    lacking = sorted(KEYS - set(manifest))
    if lacking:
        raise ReleaseError(f"{path} is damaged: it has no {lacking[0]!r}: export the release again")
    return manifest


def check_files(folder: Path) -> None:
    """Compare every file with its checksum.

    Raises:
        ReleaseError: a file is missing, changed, or not listed.
    """
    listed = _checksums(folder)
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    # Files that are not listed are refused. Hidden files belong to a repository, not to a release.
    shown = {n for n in there if not any(part.startswith(".") for part in n.split("/"))}
    problems = [
        *(f"{n} is missing" for n in sorted(set(listed) - there)),
        *(f"{n} is not listed" for n in sorted({*shown, MANIFEST} - {*listed, CHECKSUMS})),
        *(f"{n} is not what was written" for n in sorted(set(listed) & there)
          if sha256_of(folder / n) != listed[n]),
    ]  # fmt: skip
    if problems:
        raise ReleaseError(
            f"{folder} is damaged: {problems[0]} ({CHECKSUMS}): copy or export the release again"
        )


def _checksums(folder: Path) -> dict[str, str]:
    path = folder / CHECKSUMS
    if not path.is_file():
        raise ReleaseError(f"{folder} is damaged: {CHECKSUMS} is missing: export it again")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    found = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if "" in found:
        raise ReleaseError(
            f"{path} is damaged: a line names no file: copy or export the release again"
        )
    return found


@contextmanager
def _moved_when_complete(folder: Path) -> Iterator[Path]:
    """Yield a scratch folder beside the final one, and rename it at the end."""
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = folder.parent / f".{folder.name}.{uuid.uuid4().hex[:8]}"
    scratch.mkdir()
    try:
        yield scratch
        if folder.is_dir():
            folder.rmdir()  # fails where another process has filled it
        scratch.replace(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_files(release: SuiteRelease, folder: Path) -> None:
    folders = task_folders(t.task for t in release.tasks)
    for task in release.tasks:
        _write_task(task, folder / "tasks" / folders[task.task])
    for name, table in derived_tables(release).items():
        table.to_parquet(folder / name, index=False)
    intervals = pd.DataFrame(release.interval_records())
    intervals.astype({"half_width": float}).to_parquet(folder / "intervals.parquet", index=False)
    if release.joint is not None:
        _write_text(folder / "joint.json", release.joint)
    _write_text(folder / "README.md", card(release, folders))
    _write_text(folder / "SELECTION.md", release.document)
    _write_text(folder / MANIFEST, json.dumps(release.manifest(folders), indent=1, sort_keys=True))
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    listed = "".join(f"{sha256_of(folder / name)}  {name}\n" for name in names)
    _write_text(folder / CHECKSUMS, listed)


def derived_tables(release: SuiteRelease) -> dict[str, pd.DataFrame]:
    """Return the tables that repeat what `fitted.json` holds, for readers without mteblite."""
    folders = task_folders(t.task for t in release.tasks)
    tables = {f"tasks/{folders[t.task]}/items.parquet": items_table(t) for t in release.tasks}
    rows = [t.fitted.calibration_row() for t in release.tasks]
    return {**tables, "calibrations.parquet": pd.DataFrame(rows)}


def _write_task(task: ReleasedTask, folder: Path) -> None:
    folder.mkdir(parents=True)
    _write_text(folder / "fitted.json", task.fitted.to_json())
    # The files that `Pool.load` reads, with hashes instead of texts.
    place, pool = folder / "pool", task.pool
    place.mkdir()
    _write_text(place / "meta.json", json.dumps(pool.meta, sort_keys=True, indent=1))
    tables = {"texts": pool.texts, "items": pool.items}
    tables |= {f"frame-{name}": frame for name, frame in pool.frames.items()}
    for name, frame in tables.items():
        frame.to_parquet(place / f"{name}.parquet", index=False)


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
