"""Faults on real files and real processes: a tiny suite, materialized once for all tests."""

import pytest
from support.tiny_world import home, upkeep, world

__all__ = ["home", "upkeep", "world"]


@pytest.fixture(scope="session")
def folder() -> str:
    """Name of the folder that holds the world, so that all tests run at an unusual path."""
    return "the home of 模型 é"
