"""Settings of every test: offline, one thread, caches of their own, and the hub stand-in."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import hub as hub_stand_in

pytest_plugins = ["support.fixtures"]


CACHE = Path(tempfile.mkdtemp(prefix="mteblite-tests-"))
PORT = hub_stand_in.free_port()

# Read by huggingface_hub, datasets and mteb when they are imported, hence set here, before any
# test module is. Nothing answers at the address until a test asks for the `hub` fixture.
os.environ.update(
    HF_ENDPOINT=f"http://127.0.0.1:{PORT}",
    HF_HOME=str(CACHE / "hf"),
    MTEB_CACHE=str(CACHE / "mteb"),
    HF_HUB_DISABLE_XET="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    HF_DATASETS_DISABLE_PROGRESS_BARS="1",
    OMP_NUM_THREADS="1",
    OPENBLAS_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
)
for inherited in ("HF_HUB_CACHE", "HF_DATASETS_CACHE", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
    os.environ.pop(inherited, None)


def pytest_unconfigure() -> None:
    """Remove the caches of this session."""
    shutil.rmtree(CACHE, ignore_errors=True)


@pytest.fixture(scope="session")
def hub() -> Iterator[Any]:
    """The hub stand-in (`support.hub.HubStandIn`), serving; skips where ../shared is absent.

    For a process of its own, this process's environment has the right HF_ENDPOINT and HF_HOME.
    """
    if not hub_stand_in.HUB_DATA.is_dir():
        pytest.skip(hub_stand_in.ABSENT)
    stand_in = hub_stand_in.HubStandIn(PORT, CACHE / "hf")
    stand_in.start()
    yield stand_in
    stand_in.stop()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The shared folder beside the repository; skips where it is absent."""
    if not hub_stand_in.SHARED.is_dir():
        pytest.skip(hub_stand_in.ABSENT)
    return Path(hub_stand_in.SHARED)


@pytest.fixture(scope="session")
def evaluate_noting() -> Callable[[Any], tuple[list[list[str]], Any]]:
    """Runs mteb on a task object; gives the texts of each encode call and the task result."""
    from support.noting_encoder import evaluate_noting

    return evaluate_noting
