"""The writer's lock: one at a time, in turns, and never held by the dead."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from mteblite_resources.database.turns import TurnLock, is_shared, shared


def _hold(path: str, ready) -> None:
    with TurnLock(Path(path)).held(5):
        ready.set()
        time.sleep(60)


def _take_often(path: str, start, waits, log: str) -> None:
    lock = TurnLock(Path(path))
    start.wait()
    longest = 0.0
    for _ in range(25):
        since = time.monotonic()
        with lock.held(60):
            longest = max(longest, time.monotonic() - since)
            with Path(log).open("a") as stream:
                stream.write("in ")
                stream.flush()
                time.sleep(0.01)
                stream.write("out\n")
    waits.put(longest)


@pytest.fixture
def lock(tmp_path: Path) -> TurnLock:
    return TurnLock(tmp_path / "lock")


def test_a_killed_holder_holds_nobody_up(lock):
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(str(lock.path), ready))
    holder.start()
    assert ready.wait(10)
    with pytest.raises(TimeoutError), lock.held(0.2):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    with lock.held(1):
        pass


def test_a_thread_takes_it_again_and_others_wait(lock):
    entered = threading.Event()

    def other() -> None:
        with lock.held(10):
            entered.set()

    thread = threading.Thread(target=other)
    with lock.held(1):
        with lock.held(0):
            thread.start()
        assert not entered.wait(0.2)
    assert entered.wait(5)
    thread.join()


def test_who_gives_up_does_not_get_it_later(lock):
    with lock.held(1):
        thread = threading.Thread(target=_give_up, args=(lock,))
        thread.start()
        thread.join()
    time.sleep(0.1)
    with TurnLock(lock.path).held(1):
        pass


def _give_up(lock: TurnLock) -> None:
    with pytest.raises(TimeoutError), lock.held(0.1):
        pass


def test_what_is_shared_is_seen_until_the_last_one_leaves(tmp_path):
    path = tmp_path / "runs"
    assert not is_shared(path)
    with shared(path):
        with shared(path):
            assert is_shared(path)
        assert is_shared(path)
    assert not is_shared(path)


@pytest.mark.long
def test_eight_writers_take_turns(lock, tmp_path):
    context = multiprocessing.get_context("fork")
    start, waits = context.Barrier(8), context.Queue()
    log = tmp_path / "log"
    workers = [
        context.Process(target=_take_often, args=(str(lock.path), start, waits, str(log)))
        for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    longest = max(waits.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join()
    assert log.read_text() == "in out\n" * 200
    # A round of all eight takes about 0.1 s; polling made some wait for most of the 2 s.
    assert longest < 1
