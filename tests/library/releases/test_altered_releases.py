"""An altered release is refused in one sentence, also where all its hashes were made anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mteblite.files import sha256_of
from mteblite.releases.release_files import (
    ReleaseError,
    copy_release,
    read_manifest,
    read_release,
    write_release,
)
from mteblite.releases.release_reading import release_of
from mteblite.releases.suite_release import SuiteRelease


def new_checksums(folder: Path) -> None:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "checksums.sha256")
    lines = [f"{sha256_of(p)}  {p.relative_to(folder).as_posix()}\n" for p in files]
    (folder / "checksums.sha256").write_text("".join(lines))


def change_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def refusal(folder: Path) -> str:
    new_checksums(folder)
    with pytest.raises(ReleaseError) as caught:
        read_release(folder)
    assert "\n" not in str(caught.value)
    assert "Error(" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("cut_all", [False, True])
def test_a_part_of_a_release_is_none(folder: Path, release: SuiteRelease, cut_all: bool) -> None:
    """Three tasks of eight, at first by name only, then with the version of those three."""
    path = folder / "release.json"
    change_json(path, lambda m: m.update(tasks=m["tasks"][:3]))
    assert "it was changed after it was written" in refusal(folder)
    part = release_of(folder, read_manifest(folder))
    assert len(part.tasks) == 3
    new = {"content_hash": part.content_hash, "version": part.version, "n_items": part.n_items}
    change_json(path, lambda m: m.update(new))

    if cut_all:
        table = pd.read_parquet(folder / "calibrations.parquet")
        table[table["task"].isin([t.task for t in part.tasks])].to_parquet(
            folder / "calibrations.parquet", index=False
        )
        assert "does not name the task in tasks/" in refusal(folder)
    else:
        assert "calibrations.parquet differs" in refusal(folder)


@pytest.mark.parametrize("key", ["slope", "intercept", "theta_sd", "reference_low"])
@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_a_calibration_without_a_number_is_refused(
    folder: Path, key: str, value: float | None
) -> None:
    change_json(
        folder / "tasks/SmallSTS/fitted.json", lambda f: f["calibration"].update({key: value})
    )
    message = refusal(folder)
    assert "tasks/SmallSTS/fitted.json" in message
    assert "number" in message


def test_a_release_that_was_written_with_nan_is_refused(
    release: SuiteRelease, tmp_path: Path
) -> None:
    """Its hashes are right: whoever wrote it computed them."""
    first, *rest = release.tasks
    line = replace(first.fitted.calibration, intercept=np.nan)
    nan = replace(first, fitted=replace(first.fitted, calibration=line))
    write_release(replace(release, tasks=(nan, *rest)), tmp_path / "nan")
    with pytest.raises(ReleaseError, match="'intercept' is not a finite number"):
        read_release(tmp_path / "nan")


@pytest.mark.parametrize(
    ("name", "drop", "said"),
    [
        ("release.json", lambda m: m["tasks"][2].pop("task"), "task '' has no 'task'"),
        ("release.json", lambda m: m["tasks"][2].pop("part_of"), "has no 'part_of'"),
        ("release.json", lambda m: m.update(tasks=None), "release.json: "),
        ("release.json", lambda m: m.update(tasks=["SmallSTS"]), "release.json: "),
        ("tasks/SmallSTS/fitted.json", lambda f: f.pop("calibration"),
         "tasks/SmallSTS/fitted.json has no 'calibration'"),
        ("tasks/SmallSTS/fitted.json", lambda f: f["calibration"].pop("slope"),
         "tasks/SmallSTS/fitted.json has no 'slope'"),
        ("tasks/SmallSTS/fitted.json", lambda f: f["selection"].pop("weight"),
         "tasks/SmallSTS/fitted.json has no 'weight'"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(
    folder: Path, name: str, drop: Callable[[dict[str, Any]], object], said: str
) -> None:
    change_json(folder / name, drop)
    assert said in refusal(folder)


@pytest.mark.parametrize("file", ["intervals.parquet", "tasks/SmallSTS/pool/texts.parquet"])
def test_a_table_that_is_none_is_named(folder: Path, file: str) -> None:
    (folder / file).write_bytes(b"no table")
    assert file.removesuffix("/texts.parquet") in refusal(folder)


@pytest.mark.parametrize("key", ["n_items", "tasks"])
def test_what_the_manifest_repeats_is_compared(folder: Path, key: str) -> None:
    def change(manifest: dict[str, Any]) -> None:
        place = manifest["tasks"][0] if key == "tasks" else manifest
        place["n_items"] += 1

    change_json(folder / "release.json", change)
    assert "says that 'n_items' is" in refusal(folder)


def test_an_altered_release_is_not_copied(folder: Path, written: Path, tmp_path: Path) -> None:
    change_json(
        folder / "tasks/SmallSTS/fitted.json", lambda f: f["calibration"].update(intercept=0.5)
    )
    new_checksums(folder)
    with pytest.raises(ReleaseError, match="it was changed after it was written"):
        copy_release(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ReleaseError, match="it was changed after it was written"):
        copy_release(written, folder)
