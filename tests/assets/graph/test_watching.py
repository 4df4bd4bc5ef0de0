"""Checkpoints in the watched folder: finished, growing, overwritten, per suite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mteblite_assets.graph.watching import MARKER, arrivals

SUITES = ["eng", "ara"]


def _checkpoint(folder: Path, size: int = 10, name: str = "model.safetensors") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"x" * size)
    return folder


def _mark(folder: Path, sizes: dict[str, int], **extra: str) -> None:
    (folder / MARKER).write_text(json.dumps({"files": sizes, **extra}))


def _look(folder: Path, cursor: str = "", released: list[str] | None = None):
    return arrivals(folder, SUITES, ["eng"] if released is None else released, cursor)


def test_marked_checkpoint_arrives_at_the_first_look_and_once(tmp_path):
    _mark(_checkpoint(tmp_path / "run-1"), {"model.safetensors": 10}, family="merges")
    found, cursor, waiting = _look(tmp_path)
    assert [(a.suite, a.name, a.family) for a in found] == [("eng", "run-1", "merges")]
    assert found[0].as_model().role == "candidate"
    assert Path(found[0].path) == tmp_path / "run-1"
    assert waiting == []
    assert _look(tmp_path, cursor)[0] == []


@pytest.mark.parametrize("listed", [{"model.safetensors": 11}, {"gone.safetensors": 1}])
def test_marker_that_lists_more_than_there_is_waits(tmp_path, listed):
    _mark(_checkpoint(tmp_path / "run-1"), listed)
    found, cursor, waiting = _look(tmp_path)
    assert (found, waiting) == ([], ["run-1"])
    assert _look(tmp_path, cursor)[0] == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 3}', '{"files": {"a": "x"}}'])
def test_damaged_marker_waits(tmp_path, text):
    (_checkpoint(tmp_path / "run-1") / MARKER).write_text(text)
    found, cursor, _ = _look(tmp_path)
    assert found == []
    assert _look(tmp_path, cursor)[0] == []


def test_unmarked_checkpoint_needs_two_equal_looks(tmp_path):
    folder = _checkpoint(tmp_path / "run-1")
    found, cursor, waiting = _look(tmp_path)
    assert (found, waiting) == ([], ["run-1"])
    _checkpoint(folder, size=20)  # still growing
    found, cursor, _ = _look(tmp_path, cursor)
    assert found == []
    _checkpoint(folder, name="tokenizer.json")  # another file came
    found, cursor, _ = _look(tmp_path, cursor)
    assert found == []
    found, cursor, _ = _look(tmp_path, cursor)
    assert [a.name for a in found] == ["run-1"]
    assert _look(tmp_path, cursor)[0] == []


def test_overwritten_checkpoint_arrives_again_with_another_fingerprint(tmp_path):
    folder = _checkpoint(tmp_path / "run-1")
    _mark(folder, {"model.safetensors": 10})
    (first,), cursor, _ = _look(tmp_path)
    (folder / MARKER).unlink()
    _checkpoint(folder, size=12)
    assert _look(tmp_path, cursor)[0] == []
    _mark(folder, {"model.safetensors": 12})
    (second,), cursor, _ = _look(tmp_path, cursor)
    assert second.name == first.name
    assert second.fingerprint != first.fingerprint
    assert _look(tmp_path, cursor)[0] == []


def test_removed_and_returned_checkpoint_arrives_again(tmp_path):
    folder = _checkpoint(tmp_path / "run-1")
    _mark(folder, {"model.safetensors": 10})
    _, cursor, _ = _look(tmp_path)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    found, cursor, _ = _look(tmp_path, cursor)
    assert found == []
    _mark(_checkpoint(folder), {"model.safetensors": 10})
    assert [a.name for a in _look(tmp_path, cursor)[0]] == ["run-1"]


def test_subfolder_of_a_suite_is_for_that_suite_alone(tmp_path):
    _mark(_checkpoint(tmp_path / "ara" / "run-1"), {"model.safetensors": 10})
    _mark(_checkpoint(tmp_path / "run-2"), {"model.safetensors": 10})
    found, _, _ = _look(tmp_path, released=["ara", "eng"])
    assert [(a.suite, a.name) for a in found] == [("ara", "run-1"), ("ara", "run-2"),
                                                  ("eng", "run-2")]  # fmt: skip


def test_checkpoint_waits_for_a_suite_without_selection(tmp_path):
    _mark(_checkpoint(tmp_path / "ara" / "run-1"), {"model.safetensors": 10})
    found, cursor, waiting = _look(tmp_path)
    assert found == []
    assert waiting == ["ara/run-1 (no lite suite yet)"]
    found, _, _ = _look(tmp_path, cursor, released=["ara", "eng"])
    assert [(a.suite, a.name) for a in found] == [("ara", "run-1")]


def test_other_folders_and_hidden_files_are_left_alone(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.txt").write_text("x")
    _checkpoint(tmp_path / ".partial")
    (tmp_path / "file.safetensors").write_bytes(b"x")
    found, cursor, waiting = _look(tmp_path)
    assert (found, waiting) == ([], [])
    assert _look(tmp_path, cursor)[0] == []


@pytest.mark.parametrize(("folder", "name"), [
    ("merge 0.5|a", "merge-0.5-a"), ("step...3", "step.3"), ("_x", "x"), ("ünï", "n"),
])  # fmt: skip
def test_names_can_be_partition_keys(tmp_path, folder, name):
    from mteblite.suites.suite_model import check_model_name

    _mark(_checkpoint(tmp_path / folder), {"model.safetensors": 10})
    (arrival,), _, _ = _look(tmp_path)
    assert arrival.name == name
    check_model_name(arrival.name)
