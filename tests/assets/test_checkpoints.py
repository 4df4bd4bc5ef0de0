"""The watched folder: the sensor by itself, and `mteblite dev` scoring a copied checkpoint."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest
from support import tiny_suite

from mteblite_resources.home import Home
from mteblite_resources.warehouse import Warehouse, replace_partition

SUITE = "watched"
SCORED_SECONDS = 120.0
"""From the copy to the lite score in the warehouse; idle machines need a quarter of it."""
UP_SECONDS = 120.0


def wait_for(what: Any, seconds: float, process: subprocess.Popen[str] | None = None) -> Any:
    """Poll until something is true; None when the time is up or the process has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        if process is not None and process.poll() is not None:
            return None
        time.sleep(1.0)
    return None


def marker(folder: Path, source: Path, family: str = "merges") -> None:
    """Write the `_COMPLETE.json` that the trainer writes last."""
    files = {str(p.relative_to(source)): p.stat().st_size for p in source.rglob("*") if p.is_file()}
    (folder / "_COMPLETE.json").write_text(json.dumps({"files": files, "family": family}))


def half_copy(source: Path, target: Path) -> None:
    """Copy a checkpoint up to the middle of its weights."""
    shutil.copytree(source, target)
    weights = next(target.rglob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])


# --- the sensor --------------------------------------------------------------------------------


class Watched:
    """A home with a released lite suite and the sensor on its checkpoint folder."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home").prepare()
        tiny_suite.write_suite(self.home.root, {
            "name": SUITE, "tasks": ["LeeDocSTS"], "reference_scores": ["run"],
            "models": [{"name": "package:glove-50d", "family": "glove"},
                       {"name": "taken", "family": "t", "path": "elsewhere"}],
        })  # fmt: skip
        self.instance = dg.DagsterInstance.ephemeral()
        self.cursor: str | None = None

    def release(self) -> None:
        """Pretend that the suite has its lite suite."""
        warehouse = Warehouse(self.home.writer, self.home.snapshot)
        with warehouse.session() as connection:
            rows = pd.DataFrame([{"task": "LeeDocSTS"}])
            replace_partition(connection, "lite_scores.lite_suites", {"suite": SUITE}, rows)
        warehouse.publish()

    def look(self) -> Any:
        """Evaluate the sensor once, as the daemon does."""
        from mteblite_assets.graph.partitions import Partitions
        from mteblite_assets.sensors import checkpoint_sensor, lite_scoring_job
        from mteblite_resources.catalog_files import load_catalog

        partitions = Partitions.of(load_catalog(self.home))
        sensor = checkpoint_sensor(lite_scoring_job(partitions), partitions)
        context = dg.build_sensor_context(self.instance, cursor=self.cursor)
        result = sensor(context)
        self.cursor = result.cursor if isinstance(result, dg.SensorResult) else context.cursor
        return result

    def models(self) -> dict[str, Any]:
        """Models of the suite by name."""
        from mteblite_resources.catalog_files import load_catalog

        return {m.name: m for m in load_catalog(self.home).suites[SUITE].models}


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    tiny_suite.use_home(monkeypatch, tmp_path / "home")
    return Watched(tmp_path)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished checkpoint somewhere else."""
    return tiny_suite.write_model(tmp_path_factory.mktemp("runs") / "step-1", "step-1", 0.7)


def test_empty_folder_is_nothing_new(watched: Watched) -> None:
    assert watched.look().skip_message == "nothing new"


def test_missing_folder_removes_nothing(watched: Watched) -> None:
    watched.home.checkpoints.rmdir()
    assert "nothing is removed" in watched.look().skip_message


def test_checkpoint_waits_for_a_lite_suite(watched: Watched, checkpoint: Path) -> None:
    shutil.copytree(checkpoint, watched.home.checkpoints / "step-1")
    marker(watched.home.checkpoints / "step-1", checkpoint)
    assert "no lite suite yet" in watched.look().skip_message
    watched.release()
    assert len(watched.look().run_requests) == 1


def test_marked_checkpoint_is_registered_and_requested_once(
    watched: Watched, checkpoint: Path
) -> None:
    watched.release()
    folder = watched.home.checkpoints / "step-1"
    shutil.copytree(checkpoint, folder)
    marker(folder, checkpoint)
    result = watched.look()
    (request,) = result.run_requests
    assert request.partition_key == f"step-1|{SUITE}"
    (added,) = result.dynamic_partitions_requests
    assert (added.partitions_def_name, list(added.partition_keys)) == ("candidates", ["step-1"])
    model = watched.models()["step-1"]
    assert (model.role, model.family, model.path) == ("candidate", "merges", str(folder))
    assert watched.look().skip_message == "nothing new"


def test_unmarked_checkpoint_needs_two_equal_looks(watched: Watched, checkpoint: Path) -> None:
    watched.release()
    folder = watched.home.checkpoints / "step-1"
    half_copy(checkpoint, folder)
    assert "not finished: step-1" in watched.look().skip_message
    shutil.copytree(checkpoint, folder, dirs_exist_ok=True)
    assert "not finished: step-1" in watched.look().skip_message  # it grew since the last look
    assert "step-1" not in watched.models()
    assert len(watched.look().run_requests) == 1


def test_marked_checkpoint_with_a_file_cut_short_waits(watched: Watched, checkpoint: Path) -> None:
    watched.release()
    folder = watched.home.checkpoints / "step-1"
    half_copy(checkpoint, folder)
    marker(folder, checkpoint)
    for _ in range(3):
        assert "not finished: step-1" in watched.look().skip_message
    assert "step-1" not in watched.models()


def test_overwritten_checkpoint_is_requested_again(watched: Watched, checkpoint: Path) -> None:
    watched.release()
    folder = watched.home.checkpoints / SUITE / "step-1"
    shutil.copytree(checkpoint, folder)
    marker(folder, checkpoint)
    (first,) = watched.look().run_requests
    tiny_suite.write_model(folder, "other", 0.2)
    marker(folder, folder)
    (second,) = watched.look().run_requests
    assert first.partition_key == second.partition_key
    assert first.run_key != second.run_key


def test_checkpoint_never_replaces_a_model_of_the_suite(watched: Watched, checkpoint: Path) -> None:
    watched.release()
    before = watched.models()["taken"]
    folder = watched.home.checkpoints / "taken"
    shutil.copytree(checkpoint, folder)
    marker(folder, checkpoint)
    assert "another model of this name: rename" in watched.look().skip_message
    assert watched.models()["taken"] == before


# --- mteblite dev ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A home with a small materialized suite, and `mteblite dev` running on it."""
    root = tmp_path_factory.mktemp("dev")
    with pytest.MonkeyPatch.context() as patch:
        tiny_suite.use_home(patch, root / "home")
        home = tiny_suite.write_world(root)
        document = tiny_suite.suite_document()
        (home / "suites" / f"{document['name']}.yaml").unlink()
        models = [m for m in document["models"] if m["name"] != tiny_suite.CANDIDATE[0]]
        kept = {"tasks": document["tasks"][:1], "models": models[:4], "name": SUITE}
        tiny_suite.write_suite(home, {**document, **kept})
        report = tiny_suite.run_json("materialize", "--suite", SUITE)
        assert report["failed_checks"] == []
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = (root / "dev.log").open("w")
    process = subprocess.Popen(
        [sys.executable, "-c", "from mteblite_assets.cli.main import main; main()", "dev",
         "--port", str(port)],
        env={**os.environ, "MTEBLITE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster"),
             "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]),
                                            os.environ.get("PYTHONPATH", "")])},
        stdout=log, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip

    def answers() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        assert wait_for(answers, UP_SECONDS, process), (root / "dev.log").read_text()[-3000:]
        yield home, process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)
        log.close()


def lite_score(home: Path, model: str) -> float | None:
    """The model's predicted score in the published warehouse."""
    rows = Warehouse(home / "writer.duckdb", home / "mteblite.duckdb").query(
        "SELECT predicted FROM lite_scores.task_scores WHERE suite = ? AND model = ?",
        [SUITE, model],
    )
    return None if rows.empty else float(rows["predicted"].iloc[0])


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_copied_checkpoint_is_scored_and_a_half_copied_one_is_not(
    dev: tuple[Path, subprocess.Popen[str]], checkpoint: Path
) -> None:
    home, process = dev
    half_copy(checkpoint, home / "checkpoints" / "half")
    marker(home / "checkpoints" / "half", checkpoint)
    shutil.copytree(checkpoint, home / "checkpoints" / "step-1")
    started = time.monotonic()
    score = wait_for(lambda: lite_score(home, "step-1"), SCORED_SECONDS, process)
    assert score is not None, (home.parent / "dev.log").read_text()[-3000:]
    assert -1.0 <= score <= 1.0
    assert time.monotonic() - started <= SCORED_SECONDS
    assert lite_score(home, "half") is None
    assert not list((home / "models" / SUITE).glob("half*"))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_sigterm_stops_the_whole_process_group(dev: tuple[Path, subprocess.Popen[str]]) -> None:
    psutil = pytest.importorskip("psutil")
    _, process = dev
    children = psutil.Process(process.pid).children(recursive=True)
    names = " ".join(" ".join(c.cmdline()) for c in children)
    assert "dagster-webserver" in names
    assert "dagster-daemon" in names
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    _, alive = psutil.wait_procs(children, timeout=30)
    assert [c.cmdline() for c in alive if c.status() != psutil.STATUS_ZOMBIE] == []
