"""`mteblite dev`: the Dagster UI and the daemon on one home, stopped together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

import click

from mteblite_assets.cli.session import Session

MODULE = "mteblite_assets.definitions"


def serve(session: Session, host: str, port: int) -> int:
    """Start UI and daemon and wait; SIGINT and SIGTERM stop both."""
    session.register_partitions()
    session.bench.warehouse.publish()
    _ = session.definitions  # parses dbt once, here, not in every process
    beside = Path(sys.executable).parent
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    commands = [
        [str(beside / "dagster-webserver"), "-m", MODULE, "-h", host, "-p", str(port)],
        [str(beside / "dagster-daemon"), "run", "-m", MODULE],
    ]
    processes = [
        subprocess.Popen(command, env=environment, cwd=session.home.root) for command in commands
    ]
    click.echo(f"UI on http://{host}:{port}, home {session.home.root}", err=True)
    click.echo(f"checkpoints put into {session.home.checkpoints} are scored", err=True)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        for process in processes:
            process.terminate()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    while all(process.poll() is None for process in processes):
        time.sleep(0.5)
    stop(signal.SIGTERM, None)
    codes = []
    for process in processes:
        try:
            codes.append(process.wait(timeout=20))
        except subprocess.TimeoutExpired:
            process.kill()
            codes.append(process.wait())
    return 0 if all(code in (0, -signal.SIGTERM, -signal.SIGINT) for code in codes) else 1
