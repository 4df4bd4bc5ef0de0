"""`mteblite dev`: scores a copied checkpoint, starts nothing else, and is alone on its home."""

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
import pytest
from support import tiny_suite
from support.ticks import made_since

from mteblite_resources.warehouse import Warehouse

SUITE = "watched"
SCORED_SECONDS = 240.0
"""From the copy to the lite score in the warehouse; idle machines need a quarter of it."""
UP_SECONDS = 120.0

DEV = [sys.executable, "-c", "from mteblite_assets.cli.main import main; main()", "dev"]


def environment(home: Path) -> dict[str, str]:
    """The environment of `mteblite dev` on a home."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "MTEBLITE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster"),
            "PYTHONPATH": os.pathsep.join(paths)}  # fmt: skip


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


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished checkpoint somewhere else."""
    return tiny_suite.write_model(tmp_path_factory.mktemp("runs") / "step-1", "step-1", 0.7)


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
        [*DEV, "--port", str(port)],
        env=environment(home),
        stdout=log,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )

    def answers() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        assert wait_for(answers, UP_SECONDS, process), (root / "dev.log").read_text()[-3000:]
        yield home, process
    finally:
        process.terminate()
        process.wait(timeout=60)
        log.close()


def lite_score(home: Path, model: str) -> float | None:
    """The model's predicted score in the published warehouse."""
    rows = Warehouse(home / "writer.duckdb", home / "mteblite.duckdb").query(
        "SELECT predicted FROM lite_scores.task_scores WHERE suite = ? AND model = ?",
        [SUITE, model],
    )
    return None if rows.empty else float(rows["predicted"].iloc[0])


def runs_of(home: Path) -> list[Any]:
    """The runs of a home, the newest first."""
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        return list(instance.get_runs())


def ticks_of(home: Path) -> list[Any]:
    """The ticks of a home's sensor, the newest first."""
    with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
        (state,) = instance.all_instigator_state()
        return list(instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=200))


def wait_for_ticks(home: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Wait until so many ticks have ended since now."""
    before = len(ticks_of(home))
    assert wait_for(lambda: len(ticks_of(home)) > before + count, 30.0 * count, process)


def dev_command(home: Path, port: int) -> subprocess.CompletedProcess[str]:
    """Run `mteblite dev` where it must end at once."""
    return subprocess.run(
        [*DEV, "--port", str(port)], env=environment(home),
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_copied_checkpoint_is_scored_once_and_a_half_copied_one_is_not(
    dev: tuple[Path, subprocess.Popen[str]], checkpoint: Path
) -> None:
    home, process = dev
    earlier = len(runs_of(home))
    half_copy(checkpoint, home / "checkpoints" / "half")
    marker(home / "checkpoints" / "half", checkpoint)
    shutil.copytree(checkpoint, home / "checkpoints" / "step-1")
    started = time.monotonic()
    score = wait_for(lambda: lite_score(home, "step-1"), SCORED_SECONDS, process)
    assert score is not None, (home.parent / "dev.log").read_text()[-3000:]
    assert -1.0 <= score <= 1.0
    assert time.monotonic() - started <= SCORED_SECONDS
    assert "step-1" in set(tiny_suite.table(home, "lite_leaderboard")["model"])
    wait_for_ticks(home, 3, process)
    assert len(runs_of(home)) == earlier + 1
    assert lite_score(home, "half") is None
    assert not list((home / "models" / SUITE).glob("half*"))
    assert "half waits: model.safetensors has" in ticks_of(home)[0].skip_reason


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_second_daemon_and_a_port_in_use_end_at_once(
    dev: tuple[Path, subprocess.Popen[str]], tmp_path: Path
) -> None:
    psutil = pytest.importorskip("psutil")
    home, _ = dev
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refusals = {
            home: "another `mteblite dev`, or a process of one that was killed, runs on",
            tmp_path / "other": f"cannot listen on 127.0.0.1:{port}",
        }
        for place, words in refusals.items():
            done = dev_command(place, port)
            assert done.returncode == 2
            assert words in done.stderr
            assert len(done.stderr.splitlines()) == 1
    mine = str(tmp_path)
    left = [p for p in psutil.process_iter(["environ"]) if mine in str(p.info["environ"])]
    assert [p.cmdline() for p in left] == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_after_a_power_cut_the_daemon_goes_on(
    dev: tuple[Path, subprocess.Popen[str]], checkpoint: Path
) -> None:
    """A run whose process was killed is found while the daemon runs, and started again."""
    psutil = pytest.importorskip("psutil")
    home, process = dev
    for number in range(3):  # more than any limit of concurrent runs that waits for one
        folder = home / "checkpoints" / f"cut-{number}"
        shutil.copytree(checkpoint, folder)
        (folder / "number.json").write_text(str(number))
        marker(folder, folder)

        def process_of_run() -> int:
            with dg.DagsterInstance.from_config(str(home / "dagster")) as instance:
                started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
                tags = [run.tags for run in instance.get_runs(started)]
            named = next((t["mteblite/process"] for t in tags if "mteblite/process" in t), "0")
            return int(named.split()[0])

        found = wait_for(process_of_run, 120.0, process)
        assert found
        psutil.Process(found).kill()
        name = f"cut-{number}"
        assert wait_for(lambda: lite_score(home, name), 240.0, process), name  # noqa: B023


def plan(home: Path, patch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    tiny_suite.use_home(patch, home)
    report = tiny_suite.run_json("plan", "--suite", SUITE)
    return {a: set(e["run"]) for a, e in report["assets"].items() if e["run"]}


def edit_suite(home: Path) -> None:
    path = home / "suites" / f"{SUITE}.yaml"
    path.write_text(path.read_text().replace("k: 6", "k: 5"))


def edit_text(home: Path) -> None:
    path = home.parent / "data" / "TinySTS" / "pairs.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[1].replace('": "', '": "a '), *lines[1:]]) + "\n")


def overwrite(home: Path) -> None:
    tiny_suite.write_model(home.parent / "models" / "tiny-b", "another", 0.4)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_ticks_start_nothing_and_each_change_exactly_its_plan(
    dev: tuple[Path, subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, process = dev
    earlier = len(runs_of(home))
    wait_for_ticks(home, 20, process)
    assert len(runs_of(home)) == earlier
    warehouse = Warehouse(home / "writer.duckdb", home / "mteblite.duckdb")
    for change in (edit_suite, edit_text, overwrite):
        before, earlier = warehouse.ledger(), len(runs_of(home))
        change(home)
        planned = plan(home, monkeypatch)
        assert planned
        assert wait_for(lambda: not plan(home, monkeypatch), 300.0, process), change
        wait_for_ticks(home, 3, process)
        assert len(runs_of(home)) == earlier + 1, change
        made = made_since(before, warehouse.ledger())
        assert all(keys == planned[asset] for asset, keys in made.items()), change


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_sigterm_stops_the_whole_process_group(dev: tuple[Path, subprocess.Popen[str]]) -> None:
    psutil = pytest.importorskip("psutil")
    _, process = dev
    found = psutil.Process(process.pid).children(recursive=True)
    # A run that has just ended is a zombie, which has no command line.
    children = [c for c in found if c.status() != psutil.STATUS_ZOMBIE]
    names = " ".join(" ".join(c.cmdline()) for c in children)
    assert "dagster-webserver" in names
    assert "dagster-daemon" in names
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    _, alive = psutil.wait_procs(children, timeout=30)
    assert [c.cmdline() for c in alive if c.status() != psutil.STATUS_ZOMBIE] == []
