"""Pools are drawn under caps, and whole."""

from __future__ import annotations

import pytest
from support.pool_tasks import CAPS, WHOLE

from mteblite.suites.pool_settings import PoolSettings


@pytest.fixture(params=[CAPS, WHOLE], ids=["caps", "whole"])
def settings(request: pytest.FixtureRequest) -> PoolSettings:
    found: PoolSettings = request.param
    return found
