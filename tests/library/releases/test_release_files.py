"""A release's folder: round trip, bytes, immutability, damage, and no text of any data set."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.pool_tasks import TYPES, vectors_of
from support.releases import data_of, small_release, whole_pool

from mteblite.lite_scores.observing import observe_selection
from mteblite.pools.corpus import Corpus
from mteblite.pools.restriction import restrict
from mteblite.releases import release_files
from mteblite.releases.release_files import (
    ReleaseError,
    copy_release,
    read_release,
    write_release,
)
from mteblite.releases.released_task import rebuild_pool
from mteblite.releases.suite_release import SuiteRelease
from mteblite.suites.task_types import shares


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }


def test_a_release_is_read_as_it_was_written(release: SuiteRelease, written: Path) -> None:
    read = read_release(written)
    assert read.content_hash == release.content_hash
    for ours, theirs in zip(read.tasks, release.tasks, strict=True):
        assert ours.description == theirs.description
        assert ours.pool.pool_hash() == theirs.pool.pool_hash()
        np.testing.assert_array_equal(
            ours.fitted.item_parameters["slope"], theirs.fitted.item_parameters["slope"]
        )


def test_parts_of_an_aggregate_and_the_headline_are_kept(
    release: SuiteRelease, tmp_path: Path
) -> None:
    parts = {"SmallRetrieval": "Whole", "SmallReranking": "Whole"}
    write_release(replace(release, headline="mean", parts=parts), tmp_path / "parts")
    read = read_release(tmp_path / "parts")
    assert read.headline == "mean"
    assert read.task_types.parts == parts
    weights = dict(
        zip(read.task_types, shares(list(read.task_types), read.task_types), strict=True)
    )
    assert weights["SmallRetrieval"] == 0.5
    assert weights["SmallSTS"] == 1.0


@pytest.mark.parametrize("kind", TYPES)
def test_a_model_does_on_the_rebuilt_items_what_it_does_in_the_pool(
    written: Path, kind: str
) -> None:
    task = next(t for t in read_release(written).tasks if t.task == f"Small{kind}")
    rebuilt = rebuild_pool(task, data_of(kind))
    ids = task.fitted.selection["item_id"].tolist()
    cut = restrict(whole_pool(kind), ids)
    found, expected = (
        observe_selection(task.fitted.kind, p, vectors_of(p), task.fitted.selection)
        for p in (rebuilt, cut)
    )
    np.testing.assert_array_equal(found, expected)


def test_the_same_release_has_the_same_bytes(
    release: SuiteRelease, written: Path, tmp_path: Path
) -> None:
    write_release(small_release(), tmp_path / "again")
    assert files_of(tmp_path / "again") == files_of(written)
    before = {p: p.stat().st_mtime_ns for p in written.rglob("*")}
    assert not write_release(release, written)
    assert not copy_release(tmp_path / "again", written)
    assert {p: p.stat().st_mtime_ns for p in written.rglob("*")} == before


def test_no_text_of_any_data_set_is_given_away(written: Path) -> None:
    texts = {t for kind in TYPES for t in whole_pool(kind).texts["text"] if len(t) >= 20}
    assert len(texts) > 400
    found: list[str] = []
    for path in written.rglob("*"):
        if path.suffix == ".parquet":
            content = pd.read_parquet(path).to_csv()  # Parquet is compressed
        elif path.is_file():
            content = path.read_text()
        else:
            continue
        found += [f"{path.name}: {t}" for t in texts if t in content]
    assert found == []


def test_datasets_loads_every_task(release: SuiteRelease, written: Path) -> None:
    from datasets import get_dataset_config_names, load_dataset

    names = get_dataset_config_names(str(written))
    assert set(names) == {*(t.task for t in release.tasks), "calibrations", "intervals"}
    items = load_dataset(str(written), "SmallSTS", split="selected")
    chosen = next(t for t in release.tasks if t.task == "SmallSTS").fitted.selection
    assert items["item_id"][:] == chosen["item_id"].tolist()
    assert items["weight"][:] == chosen["weight"].tolist()
    lines = load_dataset(str(written), "calibrations", split="selected")
    assert lines["task"][:] == [t.task for t in release.tasks]


def test_another_release_is_never_put_over_one(release: SuiteRelease, folder: Path) -> None:
    other = replace(release, document="another")
    before = files_of(folder)
    with pytest.raises(ReleaseError, match=rf"{release.version}, and this is {other.version}"):
        write_release(other, folder)
    assert files_of(folder) == before


def test_other_folders_are_left_alone(release: SuiteRelease, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    with pytest.raises(ReleaseError, match="holds files that are no release"):
        write_release(release, tmp_path / "mine")
    with pytest.raises(ReleaseError, match=r"notes.txt is a file; expected a folder"):
        write_release(release, tmp_path / "mine/notes.txt")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["notes.txt"]
    (tmp_path / "empty").mkdir()
    assert write_release(release, tmp_path / "empty")


@pytest.mark.parametrize("call", ["write", "copy"])
def test_a_full_disk_leaves_nothing_behind(
    release: SuiteRelease, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "out" / "release"
    if call == "write":
        monkeypatch.setattr(release_files, "_write_task", full)
        with pytest.raises(OSError, match="No space"):
            write_release(release, target)
    else:
        monkeypatch.setattr(release_files.shutil, "copytree", full)
        with pytest.raises(OSError, match="No space"):
            copy_release(written, target)
    assert list((tmp_path / "out").iterdir()) == []


def test_what_is_no_release_is_said_to_be_none(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"no folder .*nowhere"):
        read_release(tmp_path / "nowhere")
    with pytest.raises(ReleaseError, match=r"is no release: it has no release.json"):
        read_release(folder / "tasks")
    manifest = folder / "release.json"
    value = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**value, "format": 99}))
    with pytest.raises(
        ReleaseError,
        match=r"format 99, and mteblite [\d.]+ reads formats up to 1: install mteblite 0",
    ):
        read_release(folder)
    manifest.write_text(json.dumps({k: v for k, v in value.items() if k != "variant"}))
    with pytest.raises(ReleaseError, match="is damaged: it has no 'variant'"):
        read_release(folder)
    manifest.write_text(json.dumps({**value, "format": None}))
    with pytest.raises(ReleaseError, match="is damaged: its format is None"):
        read_release(folder)
    manifest.write_text("{")
    with pytest.raises(ReleaseError, match="is damaged"):
        read_release(folder)


def _shift_intercept(folder: Path) -> None:
    path = folder / "tasks/SmallSTS/fitted.json"
    value = json.loads(path.read_text())
    value["calibration"]["intercept"] += 0.05
    path.write_text(json.dumps(value))


def _drop_task(folder: Path) -> None:
    path = folder / "release.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "tasks": value["tasks"][:3]}))


def _rename(folder: Path) -> None:
    path = folder / "release.json"
    path.write_text(path.read_text().replace('"small-', '"other-'))


def _scale_column(name: str, column: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        table = pd.read_parquet(folder / name)
        table[column] *= 1.1
        table.to_parquet(folder / name, index=False)

    return change


def new_checksums(folder: Path) -> None:
    """Write the checksums of the files as they are now."""
    names = sorted(set(files_of(folder)) - {"checksums.sha256"})
    lines = [f"{release_files.sha256_of(folder / n)}  {n}\n" for n in names]
    (folder / "checksums.sha256").write_text("".join(lines))


@pytest.mark.parametrize(
    "change",
    [
        _shift_intercept,
        _drop_task,
        _rename,
        _scale_column("calibrations.parquet", "slope"),
        _scale_column("tasks/SmallSTS/items.parquet", "weight"),
        _scale_column("intervals.parquet", "half_width"),
    ],
)
def test_changed_content_with_new_checksums_is_refused(
    folder: Path, change: Callable[[Path], None]
) -> None:
    change(folder)
    new_checksums(folder)
    with pytest.raises(ReleaseError, match="it was changed after it was written"):
        read_release(folder)


@pytest.mark.parametrize("name", ["SELECTION.md", "tasks/SmallSTS/fitted.json", "release.json"])
def test_damage_is_noticed(release: SuiteRelease, folder: Path, name: str) -> None:
    path = folder / name
    path.write_text(path.read_text() + " ")
    with pytest.raises(ReleaseError, match=f"{name} is not what was written"):
        read_release(folder)
    with pytest.raises(ReleaseError, match="is damaged"):
        write_release(release, folder)
    path.unlink()
    with pytest.raises(ReleaseError, match=f"{name} is missing|no release"):
        read_release(folder)


def test_lost_checksums_are_damage(folder: Path) -> None:
    (folder / "checksums.sha256").unlink()
    with pytest.raises(ReleaseError, match=r"checksums.sha256 is missing"):
        read_release(folder)


@pytest.mark.parametrize(("content", "problem"), [
    (lambda lines: lines[:-1], "is not listed"),
    (lambda lines: [line for line in lines if "intervals" not in line],
     "intervals.parquet is not listed"),
    (lambda lines: [*lines[:-1], lines[-1][:40]], "a line names no file"),
    (lambda lines: ["\udcff"], "a line names no file"),
], ids=["cut", "one taken out", "half a line", "binary"])  # fmt: skip
def test_a_list_that_lets_files_through_is_damage(
    folder: Path, content: Callable[[list[str]], list[str]], problem: str
) -> None:
    path = folder / "checksums.sha256"
    (folder / ".gitattributes").write_text("")  # of whoever keeps the folder
    read_release(folder)
    lines = content(path.read_text().splitlines())
    path.write_bytes("\n".join(lines).encode(errors="surrogateescape"))
    with pytest.raises(ReleaseError, match=problem):
        read_release(folder)


def test_changed_data_name_task_item_and_revision(written: Path) -> None:
    tasks = {t.task: t for t in read_release(written).tasks}
    data = data_of("STS")
    cells = {c: {"pairs": f["pairs"].assign(gold=9.0)} for c, f in data.cells.items()}
    described = replace(data.description, dataset_revision="r2")
    with pytest.raises(
        ValueError, match=r"SmallSTS: item 's\d/test/.*' is not in the data at revision 'r2'"
    ):
        rebuild_pool(tasks["SmallSTS"], replace(data, cells=cells, description=described))
    data = data_of("Retrieval")
    cells = {
        c: {**f, "corpus": Corpus.from_columns(f["corpus"].ids, ["other"] * len(f["corpus"]))}
        for c, f in data.cells.items()
    }
    with pytest.raises(ValueError, match=r"SmallRetrieval: the text of document 'd.*revision 'r1'"):
        rebuild_pool(tasks["SmallRetrieval"], replace(data, cells=cells))
