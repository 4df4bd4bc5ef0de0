"""Checkpoints in the watched folder of a built home: registered, asked for, refused, named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support import tiny_suite
from support.ticks import Ticks
from support.tiny_suite import CANDIDATE, SUITE

from mteblite_assets.cli.session import Session
from mteblite_resources.home import Home


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A finished checkpoint somewhere else."""
    return tiny_suite.write_model(tmp_path / "runs" / "step-1", "step-1", 0.7)


def mark(folder: Path, family: str = "merges") -> None:
    """Write the `_COMPLETE.json` that the trainer writes last."""
    (folder / "_COMPLETE.json").unlink(missing_ok=True)
    files = {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*") if p.is_file()}
    (folder / "_COMPLETE.json").write_text(json.dumps({"files": files, "family": family}))


def put(home: Path, checkpoint: Path, *place: str) -> Path:
    """Copy a checkpoint into the watched folder, finished."""
    folder = Home(home).checkpoints.joinpath(*place)
    shutil.copytree(checkpoint, folder)
    mark(folder)
    return folder


def asked(ticks: Ticks) -> list[str]:
    """Models that the next tick asks for."""
    configs = [r.run_config["ops"]["upkeep"]["config"] for r in ticks.look()]
    return [model for config in configs for model in config["models"]]


def candidates() -> dict[str, str | None]:
    return {m.name: m.path for m in Session().suite(SUITE).candidates()}


def test_a_marked_checkpoint_is_asked_for_at_the_first_look_and_scored_once(
    home: Path, checkpoint: Path
) -> None:
    ticks = Ticks()
    folder = put(home, checkpoint, "step-1")
    (request,) = ticks.until_quiet()
    assert request.run_config["ops"]["upkeep"]["config"]["models"] == ["step-1"]
    assert candidates()["step-1"] == str(folder)
    assert Session().suite(SUITE).model("step-1").family == "merges"
    assert ticks.ledger()["lite_scores", f"step-1|{SUITE}"]["status"] == "ok"
    board = tiny_suite.table(home, "lite_leaderboard")
    assert set(board.loc[board["model"] == "step-1", "suite"]) == {SUITE}
    assert ticks.message == "nothing is stale"


def test_an_unmarked_checkpoint_needs_two_equal_looks(home: Path, checkpoint: Path) -> None:
    ticks = Ticks()
    folder = Home(home).checkpoints / "step-1"
    shutil.copytree(checkpoint, folder)
    weights = next(folder.rglob("*.safetensors"))
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    assert asked(ticks) == []
    assert "step-1 waits: its files changed since the last look" in ticks.message
    weights.write_bytes(whole)
    assert asked(ticks) == []
    assert "step-1" not in candidates()
    assert asked(ticks) == ["step-1"]


def test_a_marked_checkpoint_with_a_file_cut_short_waits(home: Path, checkpoint: Path) -> None:
    ticks = Ticks()
    folder = put(home, checkpoint, "step-1")
    weights = next(folder.rglob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:100])
    for _ in range(3):
        assert asked(ticks) == []
        assert f"{weights.relative_to(folder)} has 100 bytes; its _COMPLETE.json" in ticks.message
    assert "step-1" not in candidates()


def test_an_overwritten_checkpoint_is_asked_for_again(home: Path, checkpoint: Path) -> None:
    ticks = Ticks()
    folder = put(home, checkpoint, SUITE, "step-1")
    assert len(ticks.until_quiet(quiet=2)) == 1
    first = ticks.ledger()["lite_scores", f"step-1|{SUITE}"]
    tiny_suite.write_model(folder, "other", 0.2)
    mark(folder)
    assert len(ticks.until_quiet(quiet=2)) == 1
    second = ticks.ledger()["lite_scores", f"step-1|{SUITE}"]
    assert first["data_version"] != second["data_version"]


def test_two_folders_that_look_alike_are_two_models(home: Path, checkpoint: Path) -> None:
    ticks = Ticks()
    for place in (("my run", "checkpoint-500"), ("my-run", "checkpoint-500"), ("my run (best)",)):
        put(home, checkpoint, *place)
    found = asked(ticks)
    assert len(set(found)) == 3
    assert "my-run/checkpoint-500" in found


def test_a_checkpoint_never_replaces_a_model_of_the_suite(home: Path, checkpoint: Path) -> None:
    ticks = Ticks()
    before = candidates()
    put(home, checkpoint, CANDIDATE[0])
    assert asked(ticks) == []
    assert f"{CANDIDATE[0]} is refused: suite {SUITE} has another model" in ticks.message
    assert candidates() == before


def test_a_refused_checkpoint_is_told_once_and_tried_again_when_it_changes(
    home: Path, checkpoint: Path
) -> None:
    ticks = Ticks()
    folder = put(home, checkpoint, "step-1")
    weights = next(folder.rglob("*.safetensors"))
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-8])
    mark(folder)
    assert asked(ticks) == []
    assert "step-1 is refused:" in ticks.message
    assert weights.name in ticks.message
    assert "step-1" not in candidates()
    for _ in range(3):
        assert asked(ticks) == []
        assert "refused" not in ticks.message
    weights.write_bytes(whole)
    mark(folder)
    assert asked(ticks) == ["step-1"]


def test_a_missing_folder_removes_nothing(
    home: Path, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTEBLITE_CHECKPOINTS", str(tmp_path / "mount"))
    ticks = Ticks()
    put(home, checkpoint, "step-1")
    ticks.until_quiet(quiet=1)
    Home(home).checkpoints.rename(tmp_path / "unmounted")
    assert asked(ticks) == []
    assert "is not there (unmounted?); nothing is removed" in ticks.message
    assert "step-1" in candidates()


def test_a_checkpoint_waits_for_a_lite_suite(empty_home: Path, checkpoint: Path) -> None:
    ticks = Ticks()
    put(empty_home, checkpoint, "step-1")
    assert asked(ticks) == []
    assert "step-1 waits: no suite that it is for has a lite suite yet" in ticks.message
    assert "step-1" not in candidates()
