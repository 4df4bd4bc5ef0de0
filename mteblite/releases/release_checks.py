"""What the files of a release repeat says the same as its content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from mteblite.releases.release_files import MANIFEST, ReleaseError, derived_tables
from mteblite.releases.suite_release import SuiteRelease, task_folders


def check_repeated(release: SuiteRelease, folder: Path, manifest: dict[str, Any]) -> None:
    """Compare the tables for other readers, the manifest and the folders of tasks with the content.

    Raises:
        ReleaseError: one of them says something else.
    """
    _check_derived(release, folder)
    _check_manifest(release, folder, manifest)


def _check_derived(release: SuiteRelease, folder: Path) -> None:
    """Compare the derived tables with the content; columns of other versions are not compared.

    Raises:
        ReleaseError: a table says something else than the content.
    """
    for name, table in derived_tables(release).items():
        found = pd.read_parquet(folder / name)
        columns = [column for column in table if column in found]
        try:
            pd.testing.assert_frame_equal(
                found[columns], table[columns].reset_index(drop=True), check_dtype=False
            )
        except AssertionError as error:
            raise ReleaseError(
                f"{folder / name} differs from what the release computes with: it was changed "
                "after it was written; export it again"
            ) from error


def _check_manifest(release: SuiteRelease, folder: Path, manifest: dict[str, Any]) -> None:
    """Compare what the manifest repeats, and the folders of tasks, with the content.

    Raises:
        ReleaseError: the manifest says something else, or names not all tasks of the folder.
    """
    folders = task_folders(t.task for t in release.tasks)
    there = {p.name for p in (folder / "tasks").iterdir() if not p.name.startswith(".")}
    if others := sorted(there - set(folders.values())):
        raise ReleaseError(
            f"{folder} is a part of a release: {MANIFEST} does not name the task in "
            f"tasks/{others[0]}: copy or export the whole release again"
        )
    expected = json.loads(json.dumps(release.manifest(folders)))
    entries = sorted(manifest["tasks"], key=lambda entry: str(entry["task"]))
    for found, made in [(manifest, expected), *zip(entries, expected["tasks"], strict=True)]:
        for key in sorted((set(found) & set(made)) - {"tasks"}):
            if found[key] != made[key]:
                raise ReleaseError(
                    f"{folder / MANIFEST} says that {key!r} is {found[key]!r}, and the "
                    f"content that it is {made[key]!r}: it was changed after it was written; "
                    "export it again"
                )
