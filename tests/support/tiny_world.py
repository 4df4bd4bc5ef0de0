"""One tiny suite, materialized once; every test gets it back as it was, at the same place."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import tiny_suite


@dataclass
class World:
    """A folder with home, data and models of the tiny suite."""

    root: Path
    pristine: Path
    first: dict[str, Any]

    @property
    def home(self) -> Path:
        return self.root / "home"

    def restore(self) -> None:
        """Put everything back; at the same place, so that keys with paths in them stay."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.pristine, self.root)


@pytest.fixture(scope="session")
def folder() -> str:
    """Name of the folder that holds the world."""
    return "tiny"


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, folder: str) -> Iterator[World]:
    """The tiny suite after its first `mteblite materialize`."""
    base = tmp_path_factory.mktemp(folder)
    with pytest.MonkeyPatch.context() as patch:
        tiny_suite.use_home(patch, base / "world" / "home")
        tiny_suite.write_world(base / "world")
        first = tiny_suite.run_json("materialize", "--suite", tiny_suite.SUITE)
    shutil.copytree(base / "world", base / "pristine")
    yield World(base / "world", base / "pristine", first)
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def home(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the materialized tiny suite, as after its first run."""
    world.restore()
    tiny_suite.use_home(monkeypatch, world.home)
    return world.home


@pytest.fixture
def empty_home(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny suite's files with nothing materialized (dbt's parsed manifest kept)."""
    world.restore()
    for path in world.home.iterdir():
        if path.name not in ("suites", "dbt"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    tiny_suite.use_home(monkeypatch, world.home)
    return world.home


STAGES = (
    "suites", "pools", "embeddings", "outcomes", "reference_scores", "item_parameters",
    "selections", "calibrations", "validation", "lite_scores",
)  # fmt: skip
"""All but the dbt reports, which cost seconds and follow from these."""


@pytest.fixture
def upkeep() -> Callable[..., dict[str, Any]]:
    """`upkeep(*options, expect=0)`: `mteblite materialize` of all stages but the reports."""

    def run(*options: str, expect: int = 0, command: str = "materialize") -> dict[str, Any]:
        stages = [text for stage in STAGES for text in ("--stage", stage)]
        return dict(
            tiny_suite.run_json(
                command, "--suite", tiny_suite.SUITE, *stages, *options, expect=expect
            )
        )

    return run
