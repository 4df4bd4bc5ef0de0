"""A small release, and copies of its folder that a test may damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.releases import small_release

from mteblite.releases.release_files import write_release
from mteblite.releases.suite_release import SuiteRelease


@pytest.fixture(scope="module")
def release() -> SuiteRelease:
    return small_release()


@pytest.fixture(scope="module")
def written(release: SuiteRelease, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("releases") / "one"
    assert write_release(release, folder)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(written, tmp_path / "copy"))
