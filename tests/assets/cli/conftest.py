"""A home with the tiny suite materialized, and one with its files only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import tiny_suite


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of the tiny suite, materialized once, beside a copy that no test changes.

    Tests take back what they register, but the reports of the home are then out of date.
    """
    root = tmp_path_factory.mktemp("tiny-cli")
    with pytest.MonkeyPatch.context() as patch:
        tiny_suite.use_home(patch, root / "home")
        home = tiny_suite.write_world(root)
        report = tiny_suite.run_json("materialize", "--suite", tiny_suite.SUITE)
        assert report["failed_checks"] == []
    shutil.copytree(home, home.with_name("pristine"))
    yield home
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def home(built: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The materialized home, chosen for this test."""
    tiny_suite.use_home(monkeypatch, built)
    return built


@pytest.fixture
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that holds nothing yet."""
    tiny_suite.use_home(monkeypatch, tmp_path / "home")
    (tmp_path / "home" / "suites").mkdir(parents=True)
    return tmp_path / "home"
