"""The folder of a tiny BERT, and copies of it that a test may damage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, bert_folder: Callable[..., Path]) -> Path:
    return bert_folder(tmp_path_factory.mktemp("whole") / "m")


@pytest.fixture
def folder(tmp_path: Path, whole: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "m")
