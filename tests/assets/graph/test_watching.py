"""Checkpoints in a watched folder: finished, growing, overwritten, refused, named, per suite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mteblite.suites.suite_model import check_model_name
from mteblite_assets.graph.watching import GROWING, MARKER, NO_LITE_SUITE, NO_MODEL, Look, look_at

SUITES = ["eng", "ara"]
WHOLE = {"model.safetensors": 10}


def _checkpoint(folder: Path, size: int = 10, name: str = "model.safetensors") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"x" * size)
    return folder


def _mark(folder: Path, sizes: dict[str, int], **extra: str) -> None:
    (folder / MARKER).write_text(json.dumps({"files": sizes, **extra}))


def _look(folder: Path, before: Look | None = None, released=("eng",), refuse=lambda _: "") -> Look:
    cursor = before.cursor if before else {}
    return look_at(folder, SUITES, list(released), cursor, refuse)


def _names(look: Look) -> list[tuple[str, str]]:
    return [(a.suite, a.name) for a in look.arrived]


def test_a_marked_checkpoint_arrives_at_the_first_look_and_once(tmp_path):
    _mark(_checkpoint(tmp_path / "run-1"), WHOLE, family="merges")
    look = _look(tmp_path)
    (arrival,) = look.arrived
    assert (arrival.suite, arrival.name, arrival.family) == ("eng", "run-1", "merges")
    assert arrival.as_model().role == "candidate"
    assert Path(arrival.path) == tmp_path / "run-1"
    assert look.waiting == {}
    assert _look(tmp_path, look).arrived == []


@pytest.mark.parametrize(("listed", "why"), [
    ({"model.safetensors": 11}, "model.safetensors has 10 bytes"),
    ({"gone.safetensors": 1}, "gone.safetensors, which its _COMPLETE.json lists, is not there"),
])  # fmt: skip
def test_a_marker_that_lists_more_than_there_is_waits(tmp_path, listed, why):
    _mark(_checkpoint(tmp_path / "run-1"), listed)
    look = _look(tmp_path)
    assert look.arrived == []
    assert look.waiting["run-1"].startswith(why)
    assert _look(tmp_path, look).arrived == []


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"files": 3}', '{"files": {"a": "x"}}'])
def test_a_damaged_marker_waits_and_says_what_it_must_be(tmp_path, text):
    (_checkpoint(tmp_path / "run-1") / MARKER).write_text(text)
    look = _look(tmp_path, _look(tmp_path))
    assert look.arrived == []
    assert "is not a JSON object like" in look.waiting["run-1"]


def test_an_unmarked_checkpoint_needs_two_equal_looks(tmp_path):
    folder = _checkpoint(tmp_path / "run-1")
    look = _look(tmp_path)
    assert (look.arrived, look.waiting) == ([], {"run-1": GROWING})
    _checkpoint(folder, size=20)  # still growing
    look = _look(tmp_path, look)
    assert look.arrived == []
    _checkpoint(folder, name="tokenizer.json")  # another file came
    look = _look(tmp_path, look)
    assert look.arrived == []
    look = _look(tmp_path, look)
    assert _names(look) == [("eng", "run-1")]
    assert _look(tmp_path, look).arrived == []


def test_an_overwritten_checkpoint_arrives_again(tmp_path):
    folder = _checkpoint(tmp_path / "run-1")
    _mark(folder, WHOLE)
    first = _look(tmp_path)
    (folder / MARKER).unlink()
    _checkpoint(folder, size=12)
    growing = _look(tmp_path, first)
    assert growing.arrived == []
    _mark(folder, {"model.safetensors": 12})
    second = _look(tmp_path, growing)
    assert _names(second) == _names(first)
    assert _look(tmp_path, second).arrived == []


def test_a_refused_checkpoint_is_told_once_until_its_files_change(tmp_path):
    folder = _checkpoint(tmp_path / "run-1")
    _mark(folder, WHOLE)
    look = _look(tmp_path, refuse=lambda a: f"{a.name} is a reranker")
    assert (look.arrived, look.refused) == ([], {"run-1": "run-1 is a reranker"})
    look = _look(tmp_path, look)
    assert (look.arrived, look.refused) == ([], {})
    _checkpoint(folder, name="config.json")
    assert _names(_look(tmp_path, look)) == [("eng", "run-1")]


def test_a_removed_and_returned_checkpoint_arrives_again(tmp_path):
    folder = _checkpoint(tmp_path / "run-1")
    _mark(folder, WHOLE)
    look = _look(tmp_path)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    look = _look(tmp_path, look)
    assert look.arrived == []
    _mark(_checkpoint(folder), WHOLE)
    assert _names(_look(tmp_path, look)) == [("eng", "run-1")]


def test_a_subfolder_of_a_suite_is_for_that_suite_alone(tmp_path):
    _mark(_checkpoint(tmp_path / "ara" / "run-1"), WHOLE)
    _mark(_checkpoint(tmp_path / "run-2"), WHOLE)
    look = _look(tmp_path, released=["ara", "eng"])
    assert _names(look) == [("ara", "run-1"), ("ara", "run-2"), ("eng", "run-2")]


def test_a_checkpoint_waits_for_a_suite_and_comes_again_for_a_later_one(tmp_path):
    _mark(_checkpoint(tmp_path / "run-1"), WHOLE)
    look = _look(tmp_path, released=[])
    assert (look.arrived, look.waiting) == ([], {"run-1": NO_LITE_SUITE})
    look = _look(tmp_path, look, released=["eng"])
    assert _names(look) == [("eng", "run-1")]
    look = _look(tmp_path, look, released=["ara", "eng"])
    assert _names(look) == [("ara", "run-1")]


def test_a_run_folder_gives_its_checkpoints_and_its_final_model(tmp_path):
    for name in ("checkpoint-500", "checkpoint-1000"):
        _mark(_checkpoint(tmp_path / "run" / name), WHOLE)
    names = ["run/checkpoint-1000", "run/checkpoint-500"]
    assert [name for _, name in _names(_look(tmp_path))] == names
    _mark(_checkpoint(tmp_path / "run"), WHOLE)
    assert [name for _, name in _names(_look(tmp_path))] == ["run", *names]


def test_the_parts_of_a_model_are_no_models(tmp_path):
    for part in ("0_Transformer", "1_Pooling", "2_Dense"):
        _checkpoint(tmp_path / "run-1" / part)
        (tmp_path / "run-1" / part / "config.json").write_text("{}")
    (tmp_path / "run-1" / "modules.json").write_text("[]")
    look = _look(tmp_path, _look(tmp_path))
    assert _names(look) == [("eng", "run-1")]


def test_a_folder_without_a_model_says_so_and_hidden_files_are_left_alone(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.txt").write_text("x")
    _checkpoint(tmp_path / ".partial")
    (tmp_path / "file.safetensors").write_bytes(b"x")
    look = _look(tmp_path)
    assert (look.arrived, look.waiting) == ([], {"notes": NO_MODEL})


def test_links_are_followed_and_a_link_up_the_tree_ends(tmp_path):
    shared = _checkpoint(tmp_path / ".shared", name="config.json")
    folder = _checkpoint(tmp_path / "run-1")
    (folder / "1_Pooling").symlink_to(shared)
    (folder / "up").symlink_to(tmp_path)
    look = _look(tmp_path, _look(tmp_path))
    assert _names(look) == [("eng", "run-1")]
    (shared / "config.json").write_text("changed")
    assert "run-1" in _look(tmp_path, look).waiting


ODD = ("merge 0.5|a", "merge-0.5-a", "step...3", "_x", "ünï", "模型", "x" * 240, "model@dim=64",
       "+norm", "a b/checkpoint-1", "a-b/checkpoint-1", "..hidden")  # fmt: skip


def test_every_folder_has_a_name_of_its_own_that_is_allowed(tmp_path):
    for folder in ODD:
        _mark(_checkpoint(tmp_path / folder.replace("..hidden", "h..idden")), WHOLE)
    names = [name for _, name in _names(_look(tmp_path))]
    assert len(names) == len(set(names)) == len(ODD)
    for name in names:
        check_model_name(name)
        assert "@dim" not in name
    assert {"merge-0.5-a", "a-b/checkpoint-1"} <= set(names)  # allowed names stay as they are


@pytest.mark.parametrize(
    "text",
    [
        '{"files": {"model.safetensors": 1e999}}',
        "[" * 100_000,
        '{"files": {"%s": 1}}' % ("n" * 300),
    ],
    ids=["infinite size", "deep", "long name"],
)
def test_a_malformed_marker_stops_no_other_checkpoint(tmp_path, text):
    (_checkpoint(tmp_path / "run-1") / MARKER).write_text(text)
    _mark(_checkpoint(tmp_path / "run-2"), WHOLE)
    look = _look(tmp_path)
    assert _names(look) == [("eng", "run-2")]
    assert set(look.waiting) == {"run-1"}


def test_an_error_of_one_checkpoint_stops_no_other(tmp_path):
    for name in ("run-1", "run-2"):
        _mark(_checkpoint(tmp_path / name), WHOLE)

    def refuse(arrival):
        if arrival.name == "run-1":
            raise RecursionError("too deep")
        return ""

    look = _look(tmp_path, refuse=refuse)
    assert _names(look) == [("eng", "run-2")]
    assert look.waiting == {"run-1": "cannot be read (RecursionError: too deep)"}


def test_a_marker_with_a_byte_order_mark_is_read_and_a_family_is_one_line(tmp_path):
    folder = _checkpoint(tmp_path / "run-1")
    text = json.dumps({"files": WHOLE, "family": ["a", "b"]})
    (folder / MARKER).write_bytes(b"\xef\xbb\xbf" + text.encode())
    (arrival,) = _look(tmp_path).arrived
    assert arrival.family == "checkpoints"
