"""`mteblite dev`: the Dagster UI and the daemon on one home, stopped together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import click

from mteblite_assets.cli.session import Session

MODULE = "mteblite_assets.definitions"
STOP_SECONDS = 20.0


def serve(session: Session, host: str, port: int) -> int:
    """Start UI and daemon, and wait for a signal or for the end of one of them.

    Returns:
        The exit code: 0 after SIGINT or SIGTERM, 1 where one of them ended by itself.
    """
    session.register_partitions()
    session.bench.warehouse.publish()
    _ = session.definitions  # parses dbt once for both processes
    beside = Path(sys.executable).parent
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    commands = [
        [str(beside / "dagster-webserver"), "-m", MODULE, "-h", host, "-p", str(port)],
        [str(beside / "dagster-daemon"), "run", "-m", MODULE],
    ]
    # Each has its own session, so that Ctrl-C reaches it once, through this process.
    processes = [
        subprocess.Popen(command, env=environment, cwd=session.home.root, start_new_session=True)
        for command in commands
    ]
    click.echo(f"UI on http://{host}:{port}, home {session.home.root}", err=True)
    click.echo(f"checkpoints put into {session.home.checkpoints} are scored", err=True)
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    while not asked.wait(0.5) and all(process.poll() is None for process in processes):
        pass
    _stop(processes)
    return 0 if asked.is_set() else 1


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End the processes and their children.

    Each process gets one SIGTERM, because a second one would interrupt its shutdown. After
    STOP_SECONDS it is killed with its children.
    """
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=max(0.0, deadline - time.monotonic()))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
