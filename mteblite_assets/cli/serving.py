"""`mteblite dev`: the Dagster UI and the daemon on one home, stopped together."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from mteblite_assets.cli.session import Session, UsageError

MODULE = "mteblite_assets.definitions"
STOP_SECONDS = 20.0
PR_SET_PDEATHSIG = 1
"""Of `prctl` in Linux's sys/prctl.h."""
RELOAD_SECONDS = 10.0
RELOAD = "mutation { reloadWorkspace { __typename } }"


def serve(session: Session, host: str, port: int) -> int:
    """Start UI and daemon, and wait for a signal or for the end of one of them.

    Returns:
        The exit code: 0 after SIGINT or SIGTERM, 1 where one of them ended by itself.

    Raises:
        UsageError: another daemon runs on this home, or the port is in use; nothing is started.
    """
    with _alone(session.home.root / "dev.lock") as lock:
        _check_port(host, port)
        return _serve(session, host, port, lock)


def _serve(session: Session, host: str, port: int, lock: int) -> int:
    from mteblite_assets.graph.runs import fail_dead_runs

    fail_dead_runs(session.instance, of_daemon=True)
    session.register_partitions()
    session.bench.warehouse.publish()
    _ = session.definitions  # parses dbt once for both processes
    beside = Path(sys.executable).parent
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    commands = [
        [str(beside / "dagster-webserver"), "-m", MODULE, "-h", host, "-p", str(port)],
        [str(beside / "dagster-daemon"), "run", "-m", MODULE],
    ]
    # Each has its own session, so that Ctrl-C reaches it once, through this process. Each holds
    # the lock, too: where this process is killed, what is left of it still counts as a daemon.
    processes = [
        subprocess.Popen(
            command, env=environment, cwd=session.home.root, start_new_session=True,
            pass_fds=[lock], preexec_fn=_end_with_parent,
        )
        for command in commands
    ]  # fmt: skip
    click.echo(f"UI on http://{host}:{port}, home {session.home.root}", err=True)
    click.echo(f"checkpoints put into {session.home.checkpoints} are scored", err=True)
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    partitions, looked = _partitions(session), time.monotonic()
    while not asked.wait(0.5) and all(process.poll() is None for process in processes):
        if time.monotonic() - looked >= RELOAD_SECONDS:
            before, partitions = partitions, _partitions(session)
            if partitions != before and not _reload(host, port):
                partitions = before
            looked = time.monotonic()
    _stop(processes)
    return 0 if asked.is_set() else 1


def _end_with_parent() -> None:
    """Let the kernel end this child where its parent is killed; other systems than Linux do not."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _check_port(host: str, port: int) -> None:
    """Check that the UI can listen.

    Raises:
        UsageError: it cannot.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"the UI cannot listen on {host}:{port} ({error}): choose another with --port"
            ) from error


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[int]:
    """Hold the lock of the home's daemon; yield its file descriptor.

    Raises:
        UsageError: another process holds it.
    """
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(
                f"another `mteblite dev`, or a process of one that was killed, runs on "
                f"{path.parent}: stop it, or let MTEBLITE_HOME name another home"
            ) from error
        yield file.fileno()


def _partitions(session: Session) -> list[str]:
    """Return what the partition definitions are made of: the tasks of the suites in use."""
    from mteblite_assets.graph.plan import suites_in_use

    catalog = session.catalog
    names = suites_in_use(session.bench.warehouse, catalog)
    return [e.suite_task + e.pool_task for name in names for e in catalog.suite(name).tasks]


def _reload(host: str, port: int) -> bool:
    """Let the UI load the definitions again, whose partitions are fixed; return whether it did."""
    request = urllib.request.Request(
        f"http://{host}:{port}/graphql",
        data=json.dumps({"query": RELOAD}).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


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
